"""Chinese."""

from __future__ import annotations

from app.core.languages.language import Language

CHINESE = Language(
    code="zh",
    name="Chinese",
    letters="\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff",
    function_words=(
        "什么 什麼 怎么 怎麼 多少 哪个 哪個 哪些 哪里 哪裡 为什么 為什麼 如何 是否"
        " 何时 何時 谁是 誰是 是谁 是誰 是什 以及 一个 一個 这个 這個 我们 我們 他们"
        " 他們"
    ),
    refusal="现有文档中没有足够的信息来回答这个问题。",
    greeting="你好！可以向我询问文库中文档的任何内容。",
    welcome="不客气！还想了解什么，请继续提问。",
    what_is="什么是{}？",
    greetings=(r"你好|您好|嗨|早上好|晚上好|再见",),
    thanks=(r"谢谢(?:你|您)?|多谢|感谢",),
)
