"""Machines in other formats, small and of every construct that an importer knows."""

from interlock.language.convert.formats import Format

SCXML = """\
<?xml version="1.0"?>
<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0" name="oven" initial="off"
       datamodel="ecmascript">
  <datamodel>
    <data id="heat" expr="0"/>
    <data id="door" expr="'shut'"/>
    <data id="rates">[1, 2.5]</data>
  </datamodel>
  <state id="off">
    <onexit><assign location="heat" expr="heat + 1"/></onexit>
    <transition event="turn.on" cond="door == 'shut' &amp;&amp; heat &lt; 3" target="on"/>
    <transition event="turn.on" cond="Date.now() > 5" target="broken"/>
    <transition event="turn.on" target="off"/>
  </state>
  <parallel id="on">
    <onentry>
      <if cond="heat > 1">
        <assign location="heat" expr="1"/>
      <else/>
        <assign location="heat" expr="2"/>
      </if>
    </onentry>
    <transition event="turn.off" target="off"/>
    <transition event="done.state.on" target="off"/>
    <state id="fan" initial="slow">
      <history id="speed" type="deep"><transition target="slow"/></history>
      <state id="slow">
        <onentry><send event="faster" delay="3s" id="t"/><log expr="'slow'"/></onentry>
        <onexit><cancel sendid="t"/></onexit>
        <transition event="faster" target="fast"/>
        <transition event="*" cond="In('lit') and not In('off')"><raise event="seen"/></transition>
      </state>
      <state id="fast"><transition event="turn" target="blown"/></state>
      <final id="blown"/>
    </state>
    <state id="lamp">
      <initial><transition target="lit"/></initial>
      <state id="lit"><transition event="seen" target="dark"/></state>
      <final id="dark"/>
    </state>
  </parallel>
  <state id="broken">
    <transition event="mend" target="speed"/>
    <transition cond="heat === 7" target="end"/>
  </state>
  <final id="end"/>
</scxml>
"""

XSTATE = """\
{
  "id": "oven",
  "initial": "off",
  "context": {"heat": 0, "door": "shut", "rates": [1, 2.5], "who": null},
  "on": {"BREAK": {"target": ".broken", "actions": ["note"]}},
  "states": {
    "off": {
      "entry": ["cool", {"type": "xstate.raise", "event": {"type": "cooled"}}],
      "exit": {"type": "warm"},
      "on": {
        "turn.on": [
          {"target": "on", "guard": "isShut", "description": "heats up"},
          {
            "target": "#oven.on.fan.fast",
            "guard": {"type": "and", "guards": ["isShut", {"type": "not", "guards": ["isLate"]}]}
          },
          {"actions": "complain", "guard": "inline:oven.off#turn.on[-1]#guard[0]"}
        ],
        "*": "broken"
      },
      "after": {"1500": "broken"}
    },
    "on": {
      "type": "parallel",
      "onDone": "off",
      "states": {
        "fan": {
          "initial": "slow",
          "states": {
            "slow": {"on": {"FASTER": "fast", "self": {"target": "slow", "reenter": true}}},
            "fast": {"always": {"target": "blown", "guard": "isOld"}},
            "blown": {"type": "final"},
            "last": {"type": "history", "history": "deep", "target": "slow"}
          }
        },
        "lamp": {
          "initial": "lit",
          "states": {
            "lit": {
              "invoke": {"id": "glow", "src": "g", "onDone": {"target": "dark"}, "onError": "lit"}
            },
            "dark": {"type": "final"}
          }
        }
      }
    },
    "broken": {"tags": ["sad"], "on": {"mend": "#oven.on.fan.last"}}
  }
}
"""

SYMFONY = """\
framework:
  workflows:
    article:
      type: workflow
      supports: [App\\Entity\\Article]
      initial_marking: draft
      places:
        draft: {metadata: {title: Draft, colour: red}}
        reading:
        read:
        proofing:
        proofed:
        published:
      transitions:
        review: {from: draft, to: [reading, proofing], guard: "is_granted('ROLE_EDITOR')"}
        accept: {from: reading, to: read}
        correct:
          from: proofing
          to: proofed
          metadata: {title: Correct the text}
        publish: {from: [read, proofed], to: published}
"""

SYMFONY_STATES = """\
workflows:
  pull_request:
    type: state_machine
    initial_marking: [start]
    places: [start, coding, test, review, merged, closed]
    transitions:
      - {name: submit, from: start, to: test}
      - {name: update, from: [coding, test, review], to: test}
      - {name: wait_for_review, from: test, to: review, guard: subject.isReady()}
      - {name: request_change, from: review, to: coding}
      - {name: accept, from: review, to: merged, guard: subject.isReady()}
      - {name: reject, from: review, to: closed}
      - {name: reopen, from: closed, to: review}
"""

SAMPLES: dict[Format, str] = {"scxml": SCXML, "xstate": XSTATE, "symfony": SYMFONY}
