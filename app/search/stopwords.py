"""English words that say nothing about what a question is about. Data only.

As the tokenizer leaves them: lower case, no accents, contractions in two parts ("don't" is `don` and `t`).
"""

_TEXT = """
a about above after again all also am an and any are aren as at be because been before being below between both but by
can cannot could couldn d did didn do does doesn doing don done down during each either else etc ever every few for
from further get gets got had hadn has hasn have haven having he her here hers herself him himself his how however i
if im in into is isn it its itself just ll m me might mine more most much must my myself neither no nor not of off on
once one only onto or other our ours ourselves out over own per please rather re s same shall she should shouldn since
so some somehow something still such t than that the their theirs them themselves then there these they thing things
this those though through thus to too under until unto up upon us ve very via was wasn we were weren what whatever
when whenever where wherever whether which while who whoever whom whose why will with within without won would wouldn
yet you your yours yourself yourselves
"""

STOP_WORDS: frozenset[str] = frozenset(_TEXT.split())
