"""Pictures that people send and models see."""

import base64

from tests.stories.rig import PERSON, Rig


def photo(rig: Rig, data: bytes, caption: str) -> None:
    rig.telegram.files["p"] = data
    size = {"file_id": "p", "file_unique_id": "u", "width": 10, "height": 10}
    rig.telegram.say(PERSON, "", caption=caption, photo=[size | {"file_size": len(data)}])


def shown(rig: Rig, n: int = -1) -> list[bytes]:
    return [
        base64.b64decode(part["image_url"]["url"].partition(",")[2])
        for message in rig.model.requests[n].body["messages"]
        for part in (message["content"] if isinstance(message["content"], list) else ())
        if part["type"] == "image_url"
    ]
