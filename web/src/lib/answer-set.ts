import type { AnswerCase } from "@/api/types";
import { t } from "@/lib/language";

/** The cases of an answer set, one JSON object a line; an Error names the line that is none. */
export function answerCases(text: string): AnswerCase[] {
  const cases = text.split("\n").flatMap((line, i) => {
    if (line.trim() === "") return [];
    const found = parsed(line);
    if (found === null) throw new Error(t("Line {line} is not a case: it needs a question and a library.", { line: i + 1 }));
    return [found];
  });
  if (cases.length === 0) throw new Error(t("The file holds no cases."));
  return cases;
}

/** The server checks the rest of a case; here only that it is one. */
function parsed(line: string): AnswerCase | null {
  try {
    const value: unknown = JSON.parse(line);
    const isCase = typeof value === "object" && value !== null && "question" in value && "library" in value;
    return isCase ? (value as AnswerCase) : null;
  } catch {
    return null;
  }
}
