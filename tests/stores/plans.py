"""The queries whose plans matter, each with parameters that a busy deployment would give."""

from __future__ import annotations

from collections.abc import Mapping

from rota.ids import new_id

IDS = [new_id() for _ in range(100)]

ENDS = "{" + ",".join(f'"{id}":[1,5,null]' for id in IDS) + "}"

BATCH: Mapping[str, object] = {"worker": "w", "ids": IDS, "ends": ENDS, "now": None}

ROOMS = '[["mail",""],["post","7"]]'

UNDER_LIMITS: Mapping[str, Mapping[str, object]] = {
    "me": {"worker": "w"},
    "rooms_due": {"names": ["mail", "post"], "worker": "w", "now": None},
    "due_rooms": {"names": ["mail", "post"], "worker": "w", "limit": 100, "now": None},
    "candidates": {"queues": ["q1", "q2", "q3"], "limit": 100},
    "lock_rooms": {"rooms": ROOMS},
    "measure": {"rooms": '[["mail","",-1],["post","7",5]]', "now": None},
    "drop_places": {"over": "[1,2]"},
    "take": {"ids": IDS, "worker": "w", "now": None},
    "occupy": {"places": f'[["mail","",1,{{"{IDS[0]}":1}}]]'},
    "hold": {"ids": IDS[:1], "held": f'{{"{IDS[0]}":["mail",""]}}'},
    "note_rooms": {"rooms": '[["mail","",1,2,3,4],["post","7",null,null,null,null]]'},
    "free": {"rooms": ROOMS, "many": 2},
    "free_ours": {"rooms": ROOMS, "many": 200, "worker": "w"},
    "next_opening": {"names": ["mail", "post"], "now": None},
    "close_rooms": {"closes": '[["mail","",5]]', "now": None},
    "look_again": {"now": None},
    "holding_rooms": {"now": None},
    "look_at_rooms": {"rooms": ROOMS, "now": None},
    "marks": {"ids": IDS},
}
"""The same of claims under limits, and of what gives back what they took."""

HOT: Mapping[str, Mapping[str, object]] = {
    **UNDER_LIMITS,
    "insert": {"jobs": f'[["{IDS[0]}","t","q","[]",0,null,0,5,"k",false]]', "now": None},
    "claim": {"worker": "w", "queues": ["q1", "q2", "q3"], "limit": 100, "durable": True, "now": None},
    "succeed": BATCH,
    "fail": BATCH,
    "drop": BATCH,
    "put_back": BATCH,
    "progress": {"worker": "w", "ids": IDS, "reports": ENDS},
    "promote": {"limit": 1000, "now": None},
    "reported": {"worker": "w", "ids": IDS},
    "next_due": {"now": None},
    "queues": {},
    "beat": {"worker": "w", "now": None},
    "get": {"ids": IDS},
    "known": {"ids": IDS},
    "mine": {"ids": IDS, "worker": "w"},
    "insert_one": {
        "job_id": IDS[0],
        "task": "t",
        "queue": "q",
        "args": "[]",
        "priority": 0,
        "run_at": None,
        "delay": 0,
        "max_attempts": 5,
        "key": None,
        "key_waiting": False,
        "context": None,
        "now": None,
    },
    "holder": {"key": "k", "task": "t"},
    "look_live": {"ids": IDS},
    "look_finished": {"ids": IDS},
    "conclude": {"ids": IDS, "state": "cancelled", "reason": "r", "now": None},
    "retry_waiting": {"ids": IDS, "now": None},
    "retry_finished": {"ids": IDS, "now": None},
    "edit": {"ids": IDS, "priority": 1, "queue": None, "run_at": None, "delay": 5, "now": None},
    "flow": {"span": 2_000_000, "now": None},
    "latest": {"state": "failed", "limit": 5},
    "delete_attempts": {"ids": IDS},
    "attempts": {"ids": IDS[:1]},
    "old": {"state": "succeeded", "age": 86_400_000_000, "limit": 1000, "now": None},
    "find_key": {
        "key": "k",
        "states": ["queued", "failed"],
        "before": None,
        "queue": None,
        "task": None,
        "worker": None,
        "limit": 50,
    },
}
"""Every query but those that read a whole table by their nature: `counts`, `unfinished`, `claimed_by`, a `find` by
rare properties, and `paused`, whose table has a row for each queue that someone paused."""

_BEHIND = f'[["q1",1,1000,"{IDS[0]}"],["q2",4294967296,0,"{IDS[0]}"]]'

_TOLD: Mapping[str, object] = {"worker": "w", "line": "w/1", "tally": '[["mail","",-5],["post","7",0]]'}

HOT_ON_POSTGRES: Mapping[str, Mapping[str, object]] = {
    **HOT,
    "claim_amply": {
        **_TOLD,
        "rooms": '[["mail","",800],["post","7",80]]',
        "places": '{"t":[["mail",""]],"u":[["mail",""],["post","7"]]}',
        "names": ["mail", "post"],
        "behind": _BEHIND,
        "limit": 100,
        "now": None,
    },
    "tell_places": {**_TOLD, "whole": False},
    "claim_behind": {
        "worker": "w",
        "behind": _BEHIND,
        "limit": 100,
        "durable": True,
        "now": None,
    },
}
