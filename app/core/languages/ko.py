"""Korean."""

from __future__ import annotations

from app.core.languages.language import Language

KOREAN = Language(
    code="ko",
    name="Korean",
    letters="\uac00-\ud7af\u1100-\u11ff",
    function_words=(
        "무엇 무엇인가 무엇입니까 어디 언제 누구 누가 어떤 어떻게 얼마나 몇 왜 입니다"
        " 입니까 인가 인가요 그리고 하는 있는 대한"
    ),
    refusal="제공된 문서에는 이에 답할 만한 정보가 없습니다.",
    greeting="안녕하세요! 라이브러리의 문서에 대해 무엇이든 물어보세요.",
    welcome="천만에요! 더 궁금한 것이 있으면 물어보세요.",
    what_is="{}란 무엇입니까?",
    greetings=(r"안녕(?:하세요|하십니까)?|반갑습니다|안녕히 계세요",),
    thanks=(r"감사합니다|고마워요?|고맙습니다",),
)
