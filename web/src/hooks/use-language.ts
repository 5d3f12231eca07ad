import { useStore } from "@/hooks/use-store";
import { type Language, spoken } from "@/lib/language";

export function useLanguage(): Language {
  return useStore(spoken).language;
}
