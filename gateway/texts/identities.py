"""The fixed texts for people whom the platform does not let us recognise.

Vocabulary: imports nothing of ours.
"""

from typing import Literal

IdentityKey = Literal["profile_unread", "anonymous", "asked_anonymously"]

ENGLISH: dict[IdentityKey, str] = {
    "profile_unread": "I did nothing: Slack did not show me your profile, so I cannot tell whether "
    "you belong to this organization. Try again in a minute. If it stays so, tell an operator that "
    "the app needs `users:read`.",
    "anonymous": "I did nothing: you act in the name of the group, so I cannot see who you are. "
    "Switch off “Remain anonymous” in your admin rights, or have an operator allow the group's id "
    "{id}.",
    "asked_anonymously": "This was asked in the name of the group, but a press names you. Reply to "
    "it in words in the group's name, or write {/approve …}.",
}

GERMAN: dict[IdentityKey, str] = {
    "profile_unread": "Ich habe nichts getan: Slack hat mir Ihr Profil nicht gezeigt, daher weiß "
    "ich nicht, ob Sie zu dieser Organisation gehören. Versuchen Sie es in einer Minute noch "
    "einmal. Bleibt es so, braucht die App das Recht `users:read`; sagen Sie das dem Betreiber.",
    "anonymous": "Nichts getan: Sie handeln im Namen der Gruppe, ich sehe nicht, wer Sie sind. "
    "Schalten Sie „Anonym bleiben“ in Ihren Adminrechten aus, oder der Betreiber erlaubt die "
    "Gruppe {id}.",
    "asked_anonymously": "Das wurde im Namen der Gruppe gefragt, ein Druck nennt aber Sie. "
    "Antworten Sie im Namen der Gruppe mit Worten darauf oder mit {/approve …}.",
}
