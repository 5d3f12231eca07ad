import type { Tone } from "@/components/ui/banner";

/** How loudly a notice speaks: a cut or a missing part warns, the rest informs. Codes are those of openapi.json. */
export function noticeTone(code: string): Tone {
  switch (code) {
    case "context_cut":
    case "injection_flagged":
    case "generator_unavailable":
    case "embedder_unavailable":
    case "fallback_used":
    case "hosted_provider":
      return "warn";
    default:
      return "info";
  }
}
