"""Instructions: lasting wishes of the operator and of a conversation's people."""

from gateway.feature import Command, Feature
from gateway.features.instructions.adding import add_instructions
from gateway.features.instructions.commands import instructions
from gateway.features.instructions.settings import TABLES
from gateway.features.instructions.texts import TEXTS

FEATURE = Feature(
    name="instructions",
    commands=(Command(name="instructions", run=instructions),),
    on_begin=(add_instructions,),
    texts=TEXTS,
    settings=TABLES["agent"],
)
