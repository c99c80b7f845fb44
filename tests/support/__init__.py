"""What tests share: example machines, an oracle over raw rows, faulty databases, processes."""
