"""Instructions to a model by what their words mean together, in English, German, Spanish, French and Chinese.

No sentence is spelt out here. A rule names meanings that make an instruction when they stand near each other in one sentence, in
any order: what sets aside, rules and something earlier are `Ignore the rules above` as well as `Die bisherigen Vorgaben gelten als
hinfällig`. Chinese, which has no spaces, has expressions of the same kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Literal

from app.generation.directive_words import WORDS, Means

Directive = Literal["override", "role", "output", "disclosure", "request"]
"""The families of `injection.Finding` that meanings show."""

_OPENS = 1 << len(Means)
"""Set on the first two words of a clause: where an imperative stands."""
_REPLY = _OPENS << 1
"""An answer, as a noun."""
_QUOTE = _OPENS << 2
"""Words in quotation marks stand in the sentence."""
_SET_ASIDE, _NOT, _HEED = int(Means.SET_ASIDE), int(Means.NOT), int(Means.HEED)
_RULES, _WORDS, _EARLIER, _ALL = int(Means.RULES), int(Means.WORDS), int(Means.EARLIER), int(Means.ALL)
_YOU, _MACHINE, _SYSTEM, _SPEECH = int(Means.YOU), int(Means.MACHINE), int(Means.SYSTEM), int(Means.SPEECH)
_MUST, _SAY, _ADVISE, _READING = int(Means.MUST), int(Means.SAY), int(Means.ADVISE), int(Means.READING)
_ONLY, _ROLE, _FREE, _REVEAL = int(Means.ONLY), int(Means.ROLE), int(Means.FREE), int(Means.REVEAL)
_SECRET, _ORDER, _TASK, _AND = int(Means.SECRET), int(Means.ORDER), int(Means.TASK), int(Means.AND)


@dataclass(frozen=True, slots=True)
class _Rule:
    """Meanings that must stand within a number of words; each part is met by a word that has any of its bits."""

    finding: Directive
    window: int
    parts: tuple[int, ...]
    opening: int = 0
    """Bits of the word that must open a clause as well, 0 for none."""
    first: bool = False
    """That word must be the first of the sentence."""

    def possible(self, union: int) -> bool:
        """Return whether a sentence with these bits may meet every part."""
        for part in self.parts:
            if not union & part:
                return False
        return not self.opening or bool(union & self.opening)


_RULES_OF_SENTENCES = (
    _Rule("override", 12, (_RULES, _SET_ASIDE, _EARLIER | _YOU | _MACHINE)),
    _Rule("override", 12, (_RULES | _WORDS, _EARLIER | _ALL | _YOU), _SET_ASIDE),
    _Rule("override", 12, (_WORDS, _SET_ASIDE, _EARLIER, _MUST)),
    _Rule("override", 14, (_RULES, _NOT, _HEED, _EARLIER)),
    _Rule("override", 14, (_RULES | _WORDS, _HEED, _EARLIER | _ALL | _YOU), _NOT),
    _Rule("role", 14, (_YOU, _ROLE, _MACHINE | _FREE)),
    _Rule("role", 8, (_YOU,), _ROLE),
    _Rule("role", 14, (_FREE | _MACHINE, _ROLE, _NOT), _ROLE),
    _Rule("role", 12, (_YOU, _ONLY, _ROLE | _MACHINE)),
    _Rule("output", 24, (_MACHINE, _MUST, _SAY, _READING | _ONLY | _YOU | _ALL | _ADVISE)),
    _Rule("output", 20, (_SYSTEM, _READING, _MUST, _ADVISE)),
    _Rule("output", 12, (_ONLY | _YOU,), _ORDER),
    _Rule("output", 12, (_ONLY | _YOU | _QUOTE,), _ORDER | _TASK, first=True),
    _Rule("output", 8, (_REPLY, _ALL, _MUST)),
    _Rule("disclosure", 10, (_SECRET, _YOU | _ALL | _MACHINE), _REVEAL),
    _Rule("disclosure", 14, (_SECRET, _MUST, _REVEAL, _YOU | _MACHINE)),
)
_TURNING = _RULES | _WORDS | _YOU | _MACHINE | _SYSTEM | _FREE | _REPLY | _SECRET | _ORDER | _TASK
"""Every rule has a part of these: a sentence without them, as most are, needs no look at any."""
_REPLIES = re.compile(r"(?:answer|reply|replies|response|antwort|respuesta|reponse|resume[ns]|ausgabe)[a-z]{0,2}\Z")
_BECOME = re.compile(
    r"\b(?:du bist|sie sind|ihr seid|eres|usted es|tu es|vous etes|you are|you re) (?:\w+ ){0,2}"
    r"(?:jetzt|nun|sofort|kunftig|ahora|maintenant|desormais|now|no longer|nicht mehr|ya no|ne \w+ plus)\b"
    r"|\b(?:jetzt|nun an|sofort|ahora|maintenant|desormais|now on|this (?:point|moment)(?: on)?|este momento|instante) "
    r"(?:an |en adelante )?(?:bist du|sind sie|sei|eres|seras|actuaras|tu es|tu seras|vous etes|vous serez|you are|you will|you must)\b"
    r"|\b(?:dein|deine|deiner|tu|tus|ta|tes|votre|vos|your) (?:\w+ )?(?:antwort|antworten|respuesta|respuestas|reponse|reponses)\b"
)


class _Meanings(dict[str, int]):
    """The bits of every word seen, for all threads; forgets all when full."""

    def __missing__(self, word: str) -> int:
        if len(self) >= _MOST_WORDS:
            self.clear()
        bits = 0
        for means, pattern in _patterns().items():
            if pattern.match(word):
                bits |= means
        if _REPLIES.match(word):
            bits |= _REPLY
        self[word] = bits
        return bits


_MOST_WORDS = 200_000
_MEANINGS = _Meanings()
_PATTERNS: dict[int, re.Pattern[str]] = {}


def _patterns() -> Mapping[int, re.Pattern[str]]:
    """Return the expression of each meaning; made with the first word."""
    if not _PATTERNS:
        for means, spellings in WORDS.items():
            stems = "|".join(spelling.replace("*", "[a-z]*") for spelling in dict.fromkeys(spellings.split()))
            _PATTERNS[int(means)] = re.compile(f"(?:{stems})\\Z")
    return _PATTERNS


def meaning_known(word: str) -> bool:
    """Return whether a lower-case word has a meaning here."""
    return _MEANINGS[word] != 0


def directives(sentence: str, found: list[str]) -> Iterator[Directive]:
    """Yield the families of instructions that a sentence shows, with repetitions.

    Args:
        sentence: As `disguises.plain` returns it.
        found: Its words, lower case.
    """
    bits = list(map(_MEANINGS.__getitem__, found))
    union = reduce(or_, bits, 0)
    if not union & _TURNING:
        return
    if union & _YOU and union & (_ONLY | _REPLY) and _BECOME.search(" ".join(found)):
        yield "role" if union & _ONLY else "output"
    if union & (_ORDER | _TASK) and any(mark in sentence for mark in _QUOTES):
        union |= _QUOTE
    if union & _SYSTEM and union & _SPEECH:
        union |= _MACHINE
    likely = [rule for rule in _RULES_OF_SENTENCES if rule.possible(union)]
    if likely:
        yield from _near(_placed(bits, union & _QUOTE), likely)


_QUOTES = "\"\u201c\u201e\u00ab\u2018"


def _placed(bits: list[int], quote: int) -> list[int]:
    """Return the bits of each word with those that its place gives it."""
    placed = [one | quote for one in bits]
    for at, one in enumerate(bits):
        if at < _IMPERATIVE or bits[at - 1] & _AND:
            placed[at] |= _OPENS
        if one & _SYSTEM and any(other & _SPEECH for other in (*bits[max(0, at - 1) : at], *bits[at + 1 : at + 3])):
            placed[at] |= _MACHINE  # language model, modelo de lenguaje
    return placed


_IMPERATIVE = 2
"""Words of a sentence in which its imperative stands."""


def _near(placed: list[int], rules: Iterable[_Rule]) -> Iterator[Directive]:
    """Yield the finding of each rule all of whose parts stand within its window, not all met by one word."""
    for rule in rules:
        parts = (*rule.parts, rule.opening) if rule.opening else rule.parts
        last = [-len(placed) - rule.window] * len(parts)
        for at, bits in enumerate(placed):
            for index, part in enumerate(parts):
                if bits & part and (index < len(rule.parts) or (at == 0 if rule.first else bits & _OPENS)):
                    last[index] = at
            if at - min(last) <= rule.window and len(set(last)) > 1:
                yield rule.finding
                break


_ZH_EARLIER = "(?:之前|先前|以前|此前|前面|前文|上面|以上|上述|前述|原有|原先|原来|所有|一切|全部|任何|系统|你(?!们)|您|已有|早先|既有|迄今|收到|给出|下达)"
_ZH_RULES = "(?:指令|指示|提示|规则|规則|準則|准则|指引|指导|说明|說明|系统消息|设定|設定)"
_ZH_WORDS = "(?:要求|规定|命令|限制|约束|安排|任务|训练|对话|内容|的话|所说)"
_ZH_IGNORE = "(?:忽略|忽视|无视|無視|忘记|忘掉|忘却|忘記|抛开|抛弃|丢弃|不要?(?:再)?(?:理会|理睬|遵守|遵循|遵从|执行|服从|考虑|管)|不[必用需得予应](?:再)?(?:理会|理睬|遵守|遵循|遵从|执行|服从|考虑|管)|无[需须](?:理会|遵守|遵循|遵从|执行|服从|考虑)|别[再]?(?:管|理|遵守|执行|听)|置之不理|抛诸脑后|抛到脑后|不算数)"
_ZH_VOID = "(?:失效|无效|作废|不再(?:有效|适用|生效)|取消|撤销|废除|废止|推翻|绕过|跳过|覆盖|放弃|清除|删除|终止|中止)"
_ZH_MACHINE = "(?:AI|ai|人工智能|语言模型|大模型|模型|助手|助理|机器人|智能体|ChatGPT|GPT|LLM)"
_ZH_MUST = "(?:应|须|必须|需要|务必|最好|要|请|得|理应)"
_ZH_SAY = "(?:回答|回复|答复|回应|输出|写|说|告诉|告知|总结|概括|提到|声明|声称|表示|建议|翻译|强调|指出|拒绝|劝)"
_ZH_ADVISE = "(?:推荐|推销|宣传|建议|鼓励|称赞|赞扬|劝)"
_ZH_READING = "(?:本文|本页|本段|此文|该文|这段|这篇|此段|这份|本文档|文档|文本|网页|页面|资料|阅读|读取|读到|处理|分析|总结|摘要|用户|使用者|读者|提问者)"
_ZH_PLEASE = "(?:(?<![申邀聘恳吁奏提报延宴敬])请(?![求愿教客示假战缨柬帖])|務必|务必)"
_ZH = re.compile("[\u4e00-\u9fff]")
_CHINESE: tuple[tuple[Directive, re.Pattern[str]], ...] = tuple(
    (finding, re.compile(pattern))
    for finding, pattern in (
        ("override", f"{_ZH_IGNORE}[^。！？\n]{{0,16}}{_ZH_EARLIER}[^。！？\n]{{0,12}}(?:{_ZH_RULES}|{_ZH_WORDS})"),
        ("override", f"{_ZH_EARLIER}[^。！？\n]{{0,12}}(?:{_ZH_RULES}|{_ZH_WORDS})[^。！？\n]{{0,16}}{_ZH_IGNORE}"),
        ("override", f"{_ZH_VOID}[^。！？\n]{{0,10}}{_ZH_EARLIER}[^。！？\n]{{0,10}}{_ZH_RULES}"),
        ("override", f"{_ZH_EARLIER}[^。！？\n]{{0,10}}{_ZH_RULES}[^。！？\n]{{0,16}}{_ZH_VOID}"),
        ("role", f"(?:你(?!们)|您|{_ZH_PLEASE}|从现在|让我们|我们来|来玩)[^。！？\n]{{0,16}}(?:扮演|假装|充当|饰演|化身|角色|模拟)"),
        ("role", "(?:扮演|假装|充当|饰演)[^。！？\n]{0,20}(?:你(?!们)|您)"),
        ("role", "(?:你(?!们)|您)(?:现在|将|就|不再|已经|从现在[起开始]*)[^。！？\n]{0,4}(?:是|成为|变成)|(?:从现在|从此)[^。！？\n]{0,6}(?:你(?!们)|您)"),
        ("role", "(?:假设|假如|想象|想像|设想|假定|当作|试想)[^。！？\n]{0,6}(?:你(?!们)|您|自己)[^。！？\n]{0,4}(?:是|为|成)"),
        ("output", f"{_ZH_MACHINE}[^。！？\n]{{0,24}}{_ZH_MUST}[^。！？\n]{{0,24}}{_ZH_ADVISE}"),
        ("output", f"{_ZH_READING}[^。！？\n]{{0,24}}{_ZH_MACHINE}[^。！？\n]{{0,16}}{_ZH_MUST}[^。！？\n]{{0,24}}{_ZH_SAY}"),
        ("output", f"(?:任何|所有|凡是|每个|各)[^。！？\n]{{0,16}}{_ZH_MACHINE}[^。！？\n]{{0,24}}{_ZH_MUST}[^。！？\n]{{0,24}}{_ZH_SAY}"),
        ("output", f"{_ZH_MACHINE}[^。！？\n]{{0,24}}{_ZH_MUST}[^。！？\n]{{0,20}}(?:用户|读者|使用者|提问者)"),
        ("output", f"{_ZH_MACHINE}[^。！？\n]{{0,16}}{_ZH_MUST}[^。！？\n]{{0,16}}(?:只|仅|始终|总是|一律)[^。！？\n]{{0,12}}{_ZH_SAY}"),
        ("output", f"(?:{_ZH_PLEASE}|只[需能要]|必须|从现在|接下来)[^。！？\n]{{0,16}}(?:回答|回复|答复|回应|输出|作答|翻译|改写)"),
        ("output", "(?:你(?!们)|您)的?(?:所有|每个|最终|下一个)?(?:回答|回复|答复|回应|答案|输出|总结)"),
        ("output", "(?:所有|每[个一次]*|任何)(?:的)?(?:回答|回复|答复|输出)[^。！？\n]{0,8}(?:必须|都要|应|须|以)"),
        ("request", f"(?:\\A|[。！？：；，\n])\\s*{_ZH_PLEASE}[^。！？\n]{{0,6}}(?:写|列出|解释|总结|告诉|推荐|提供|描述|说|给|帮|介绍|介紹|打印|显示)"),
        ("disclosure", "(?:泄露|透露|显示|输出|打印|告诉我|展示|公开|说出|列出|发送|提供|复述|重复)[^。！？\n]{0,16}"
         "(?:系统提示|提示词|密码|密钥|口令|机密|隐藏(?:的)?(?:指令|提示)|初始(?:指令|提示)|API|内部规则)"),
    )
)  # fmt: skip


def chinese_directives(sentence: str) -> Iterator[Directive]:
    """Yield the families of instructions that a Chinese sentence shows."""
    if _ZH.search(sentence):
        for finding, pattern in _CHINESE:
            if pattern.search(sentence):
                yield finding
