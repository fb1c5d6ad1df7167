"""The forms in which people ask for a whole document or for a list of documents, by language. Pure data.

Read by `app.rag.intents` only. Every form is matched against the whole question, trimmed, in small letters or not:
`x` is what the question calls the document, `words` what documents are to mention. English has most forms; German,
Spanish, French and Chinese have the commonest.
"""

import re


def _forms(*forms: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(form, re.IGNORECASE) for form in forms)


_SUMMARY = r"(?:summary|overview|outline|recap|synopsis|gist|digest|abstract|tl;?\s?dr|run-?down)"
_POINTS = r"(?:points?|ideas?|takeaways?|findings|topics|arguments|messages|conclusions|facts|parts)"
_KINDS = r"(?:(?:short|brief|quick|concise|detailed|long|good|full|one-page|bulleted|executive)\s+)*"
_PARTS = r"(?:sections?|chapters?|headings?|parts|paragraphs?|tables?|appendi(?:x|ces))"

SUMMARIES = _forms(
    r"(?:briefly |shortly |quickly )?(?:summari[sz]e|sum up|recap|outline|tl;?\s?dr)(?:(?:\s*[:,])?\s+(?P<x>.+))?",
    rf"(?:give|show|write|make|get|provide|tell|create|draft)(?: me| us)? (?:an? |the )?{_KINDS}{_SUMMARY}"
    r"(?: (?:of|on|for|about) (?P<x>.+))?",
    rf"(?:i (?:want|need|would like|'d like) )?(?:an? |the )?{_KINDS}{_SUMMARY}(?: (?:of|for) (?P<x>.+))?",
    r"what(?:'s|’s|s| is| are) (?P<x>.+?) (?:all )?about",
    r"what (?:does|do) (?P<x>.+?) (?:cover|talk about|deal with)",
    rf"(?:(?:what(?:'s|’s| are| is)|list|give me|show me|name|tell me) )?(?:all )?(?:of )?(?:the )?"
    rf"(?:key|main|most important|central|core) {_POINTS}(?: (?:of|from|in|made in) (?P<x>.+))?",
    r"(?:read|go through) (?P<x>.+?) and (?:summari[sz]e|sum up)(?: it| this)?",
    # German
    r"fass(?:e|en sie)?(?: mir| uns)?(?: bitte)?(?: (?P<x>.+?))?(?: bitte| kurz| knapp)* zusammen",
    r"(?P<x>.+?) (?:bitte |kurz |knapp )*zusammenfassen",
    r"(?:gib|gebe|schreib|mach|erstell)e?(?: mir| uns)? (?:eine |einen )?(?:kurze |knappe |kurzen )?"
    r"(?:zusammenfassung|überblick|übersicht)"
    r"(?: (?:von|vom|zu|zum|zur|über|des|der|für)(?: (?:den|die|das))? (?P<x>.+))?",
    r"(?:eine |die )?(?:kurze )?(?:zusammenfassung|übersicht)(?: (?:von|vom|zu|zum|zur|des|der) (?P<x>.+))?",
    r"(?:worum geht(?: e|’|')s in|wovon handelt|was steht in) (?P<x>.+)",
    # Spanish
    r"(?:resume|resumir|resúmeme|resumime|resuma)(?: (?P<x>.+))?",
    r"(?:haz|hazme|dame|escribe|quiero) (?:un )?(?:breve )?resumen(?: (?:de|del|sobre) (?P<x>.+))?",
    r"(?:un )?resumen(?: (?:de|del) (?P<x>.+))?",
    r"de qué (?:trata|habla|va) (?P<x>.+)",
    r"(?:cuáles son )?(?:los )?puntos (?:clave|principales) (?:de|del) (?P<x>.+)",
    # French
    r"résume[rz]?(?:-moi)?(?: (?P<x>.+))?",
    r"(?:fais|donne|faites|donnez|écris)(?:-moi)? un (?:bref |court )?résumé(?: (?:de|du|des) (?P<x>.+))?",
    r"(?:un )?résumé (?:de|du|des) (?P<x>.+)",
    r"de quoi (?:parle|traite) (?P<x>.+)",
    r"(?:quels sont )?(?:les )?points (?:clés|principaux) (?:de|du) (?P<x>.+)",
    # Chinese
    r"(?:总结|概括|归纳|概述)(?:一下)?\s*(?P<x>.*)",
    r"(?P<x>.*?)\s*(?:的)?(?:摘要|总结|概要|要点|大纲)(?:是什么|有哪些)?",
    r"(?P<x>.+?)\s*(?:主要)?(?:讲|说|写)(?:了|的是|的)(?:些)?什么",
)
"""A summary of all of it. Without an `x` the document is the one that is talked about."""

LISTS = _forms(
    r"(?:list|name|give me|show me|extract|collect|find|what are|count)(?: me)? (?:all|every|each)(?: of)?(?: the)? "
    r"(?P<rest>.+)",
    rf"(?:how many|which|what) (?P<rest>{_PARTS} .+)",
    r"(?:liste|nenne|zähle)(?: mir)?(?: bitte)? alle (?P<rest>.+?)(?: auf)?",
    r"(?:enumera|lista|dame) tod[oa]s (?:los|las) (?P<rest>.+)",
    r"(?:liste|énumère|donne)(?:-moi)? tou(?:s|tes) les (?P<rest>.+)",
)
"""Everything of a kind in one document; `rest` ends in the document's name, see `BEFORE_NAME`."""

BEFORE_NAME = re.compile(
    r"\s(?:mentioned in|listed in|described in|contained in|are(?: there)? in|does|do|has|in|from|of|"
    r"aus|im|von|vom|del|de|en|dans|du)\s",
    re.IGNORECASE,
)
"""What may stand between the things to list and the document's name."""

AFTER_NAME = re.compile(r"\s+(?:have|has|contain|include)$", re.IGNORECASE)

TRANSLATIONS = _forms(
    r"translate (?P<x>.+?)(?: (?:in)?to \w+)?",
    r"übersetz(?:e|en sie)? (?:mir )?(?P<x>.+?)(?: (?:ins|nach|auf|in) \w+)?",
    r"traduce (?P<x>.+?)(?: al? \w+)?",
    r"tradui(?:s|sez|re) (?P<x>.+?)(?: en \w+)?",
    r"(?:把|将)?(?P<x>.+?)翻译成\w+",
    r"翻译(?:一下)?\s*(?P<x>.+)",
)

_DOCUMENTS = r"(?:documents?|docs?|notes?|articles?|papers?|manuals?|e-?mails?)"
_ANY_FILES = r"(?:documents?|docs?|notes?|articles?|papers?|manuals?|e-?mails?|files?|pages?)"
_OURS = r"(?:of (?:my|our|the|all) |my |our |the )?"
_TALK = (
    r"(?:mentions?|mentioned|mentioning|talks? about|talking about|discuss(?:es)?|refers? to|speaks? (?:of|about)|"
    r"deals? with)"
)
_HOLD = (
    r"(?:contains?|containing|says? (?:something|anything) about|(?:has|have) (?:something|anything) (?:about|on)|"
    r"(?:is|are) about)"
)
_VERB = rf"(?:{_ANY_FILES}(?: do| does)? (?:that |which )?{_TALK}|{_DOCUMENTS}(?: that| which)? {_HOLD})"

MENTIONS = _forms(
    rf"(?:which|what|how many|in how many) {_OURS}{_VERB} (?P<words>.+)",
    rf"(?:do|does) any {_OURS}{_VERB} (?P<words>.+)",
    rf"(?:list|show|find|give|name|get)(?: me)? (?:all |every )?{_OURS}{_VERB} (?P<words>.+)",
    rf"(?:list|show|find|give|name|get)(?: me)? (?:all|every) {_OURS}{_ANY_FILES} (?:about|on) (?P<words>.+)",
    rf"(?:in )?(?:which|what|how many) {_OURS}{_ANY_FILES} (?:is|are|was|were|do we mention|do i mention) "
    r"(?P<words>.+?) (?:mentioned|discussed|named)(?: in)?",
    rf"(?:is|are) (?P<words>.+?) (?:mentioned|discussed) in any {_OURS}{_ANY_FILES}",
    rf"which {_ANY_FILES} (?:do i|do we|have i|have we) (?:have|got|written) (?:about|on) (?P<words>.+)",
    # German
    r"(?:welche|wie viele) (?:meiner |der )?(?:dokumente|dateien|notizen) (?:erwähnen|nennen|behandeln|enthalten|"
    r"sprechen von|handeln von) (?P<words>.+)",
    r"in (?:welchen|wie vielen) (?:meiner |der )?(?:dokumenten?|dateien|notizen) (?:steht(?: etwas über)?|"
    r"kommt|wird|werden) (?P<words>.+?)(?: (?:vor|erwähnt|genannt|behandelt))?",
    # Spanish
    r"(?:qué|que|cuáles|cuántos|cuantos) documentos (?:mencionan|hablan de|hablan sobre|contienen|tratan de) "
    r"(?P<words>.+)",
    # French
    r"(?:quels|combien de) documents (?:mentionnent|parlent de|parlent du|contiennent|traitent de) (?P<words>.+)",
    # Chinese
    r"(?:哪些|哪几个|有多少(?:个|份)?|多少(?:个|份)?)(?:文档|文件|笔记)(?:中|里)?(?:提到|提及|包含|谈到|讲到|涉及)(?:了)?"
    r"\s*(?P<words>.+)",
)
"""Which documents mention something. Files and pages are what documents are about often enough ("which file contains
the key?"), so that only verbs of speaking count for them."""

ALL_DOCUMENTS = _forms(
    rf"how many {_ANY_FILES} (?:do (?:i|we) have|are there|have (?:i|we)(?: got| added)?|are here)"
    r"(?: here| in all| altogether)?(?: in (?:my|the|this|our) (?:library|collection))?",
    rf"how many {_ANY_FILES} (?:are|do i have|do we have) in (?:my|the|this|our) (?:library|collection)",
    rf"(?:list|show)(?: me)? all (?:of )?(?:my |our |the )?{_DOCUMENTS}"
    r"(?: in (?:my|the|this|our) (?:library|collection))?",
    r"wie viele (?:dokumente|dateien) (?:habe ich|gibt es|sind es)(?: hier)?",
    r"cuántos documentos (?:tengo|hay)",
    r"combien de documents (?:ai-je|y a-t-il)",
    r"(?:一共)?有多少(?:个|份)?(?:文档|文件)",
)

IT = re.compile(
    r"(?:it|this|that|it all|all of it|(?:this|that|the|the whole|the entire|my|whole|entire|attached|the attached) "
    r"(?:document|doc|file|text|page|pdf|article|paper|report|manual|note|book)|"
    r"es|das|dies|dieses|(?:das|dieses|die|diese) (?:dokument|datei|ganze)|"
    r"esto|lo|(?:este|el) (?:documento|archivo)|cela|ça|(?:ce|le) (?:document|fichier)|"
    r"它|这个|这|本文|(?:这个|这份|该)?(?:文档|文件|文章))",
    re.IGNORECASE,
)
"""Words for a document that has been talked about."""

POLITE = re.compile(
    r"(?:please|pls|hey|hi|hello|ok(?:ay)?|so|now|then|and|docent|"
    r"(?:can|could|would|will) you(?: please)?|i(?:'d| would) like you to|i want you to|help me|"
    r"bitte|kannst du(?: mir)?(?: bitte)?|könntest du(?: mir)?(?: bitte)?|und|"
    r"por favor|puedes|podrías|y|s'il (?:te|vous) plaît|peux-tu|pouvez-vous|pourrais-tu|et|请|请你|能不能|帮我)"
    r"(?:[,:;!]|(?<=[\u4e00-\u9fff])|\s)\s*",
    re.IGNORECASE,
)
"""What is said before the question begins."""

MANNER = re.compile(
    r"[,;]?\s+(?:please|briefly|shortly|quickly|for me|for us|in short|in brief|in detail|in full|bitte|kurz|por favor|"
    r"(?:in|into|as|with|using|under|within|auf|en) (?:[\w-]+ ){0,3}"
    r"(?:words?|sentences?|bullets?|points?|lines?|paragraphs?|detail|terms|table|list|english|german|french|spanish|"
    r"chinese|sätzen|worten|deutsch|englisch|frases|español|phrases|français)(?: each)?)$",
    re.IGNORECASE,
)
"""How the answer should be, at the end of a question."""
