import type { MouseEvent } from "react";
import type { NearestPlace } from "@/api/types";
import { useWorkspace } from "@/hooks/use-workspace";
import { t } from "@/lib/language";
import { dense } from "@/lib/passage";

/** Where the documents come nearest to a question that they do not answer: no answer, so without marks and never copied with one. */
export function NearestPlaces({ places }: { places: readonly NearestPlace[] }) {
  const { read } = useWorkspace();
  if (places.length === 0) return null;
  const open = ({ library, doc_id, title, revision, start, end }: NearestPlace) => (event: MouseEvent): void => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // in another tab or window
    event.preventDefault();
    read({ library, doc_id, title, revision, start, end, page: null });
  };
  return (
    <section aria-label={t("The nearest places, which are no answer")} className="mt-3 text-sm text-muted">
      <p>{t("Nothing in your documents says it outright. These places come nearest:")}</p>
      <ul className="mt-2 flex flex-col gap-2.5">
        {places.map((place) => (
          <li key={`${place.doc_id}/${place.start}`} className="border-l-2 border-line pl-3">
            <blockquote className="font-serif text-[0.9375rem] leading-6 whitespace-pre-line [overflow-wrap:anywhere]">“{dense(place.quote)}”</blockquote>
            <a href={place.view_url} aria-label={t("{title}: open it at these words", { title: place.title })} onClick={open(place)} className="text-xs underline underline-offset-2 [overflow-wrap:anywhere] hover:text-ink">
              {place.title}
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}
