"""The store: where instances and their history are kept, and the verbs that reach them."""
