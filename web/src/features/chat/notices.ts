import type { AnswerRecord } from "@/api/types";
import type { Tone } from "@/components/ui/banner";

/** How loudly a notice speaks: a cut or a missing part warns, the rest informs. */
export function noticeTone(code: string): Tone {
  switch (code) {
    case "context_cut":
    case "injection_flagged":
    case "generator_unavailable":
    case "embedder_unavailable":
    case "language_differs":
    case "fallback_used":
    case "hosted_provider":
      return "warn";
    default:
      return "info";
  }
}

/** Whether a notice says anything above this answer: nearest passages mean nothing where none was used, and a cut is told at its end. */
export function concerns(code: string, answer: AnswerRecord | null): boolean {
  return code !== "answer_cut" && (code !== "fallback_used" || answer?.status !== "abstained");
}
