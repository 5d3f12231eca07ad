import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { search } from "@/api/queries";
import type { SearchHit } from "@/api/types";
import { FilterBar } from "@/components/filter-bar";
import { FlagTag } from "@/components/flag-tag";
import { BandTag, SignalBars } from "@/components/signals";
import { Banner } from "@/components/ui/banner";
import { Button } from "@/components/ui/button";
import { Input, Segmented, Select } from "@/components/ui/field";
import { Guarded } from "@/components/ui/guarded";
import { Page } from "@/components/ui/section";
import { Empty, Failure, Skeleton } from "@/components/ui/states";
import { useDebounced } from "@/hooks/use-debounced";
import { nameHere, useRoute } from "@/hooks/use-route";
import { useWorkspace } from "@/hooks/use-workspace";
import { fixed, LIBRARIES, optionsOf, placeWords } from "@/lib/format";
import { t } from "@/lib/language";
import { dense } from "@/lib/passage";
import { noticeWords } from "@/lib/server-words";
import { highlightPieces } from "./highlight-pieces";

const COUNTS = ["10", "25", "50"] as const;

/** Hits without an answer: what retrieval finds, and why. */
export function SearchPage() {
  const { library, choose, filter, read, scoresShown, toggleScores } = useWorkspace();
  // The address holds the words, so that Back, a reload and a bookmark find them.
  const { page, argument } = useRoute();
  const text = argument ?? "";
  const [count, setCount] = useState<(typeof COUNTS)[number]>("10");
  const [all, setAll] = useState(false);
  const typed = (value: string): void => {
    nameHere("replace", page, value === "" ? null : value);
    setAll(false);
    read(null);
  };
  const query = useDebounced(text.trim(), 250);
  const found = useQuery({ ...search(query, library, Number(count), filter), placeholderData: (previous) => previous });
  const hits = found.data?.hits ?? [];
  // Under passages that fit, those that hardly do wait for a press.
  const fitting = hits.filter((hit) => hit.band !== "weak");
  const shown = all || fitting.length === 0 ? hits : fitting;
  return (
    <Page title={t("Search")} lead={t("Passages that match, best first. No model is asked.")}>
      <div className="flex flex-wrap items-center gap-2">
        <Input label={t("Search")} type="search" autoFocus placeholder={t("Words, a question, a phrase")} value={text} onChange={(event) => typed(event.target.value)} className="min-h-9 flex-1 basis-64 px-3 font-serif text-lg" />
        <Segmented
          label={t("Library")}
          value={library}
          onValue={choose}
          options={optionsOf(LIBRARIES)}
        />
        <Select label={t("Number of hits")} value={count} onValue={setCount} options={COUNTS.map((value) => ({ value, label: t("{n} hits", { n: Number(value) }) }))} />
      </div>
      <FilterBar />
      {found.data?.notices.map((notice) => (
        <Banner key={notice.code}>{noticeWords(notice)}</Banner>
      ))}
      {query === "" && <Empty title={t("Type to search")}>{t("Meaning and words are searched together. Results follow as you type.")}</Empty>}
      {query !== "" && found.isPending && <Skeleton lines={8} label={t("Searching")} />}
      {query !== "" && found.isError && <Failure error={found.error} onRetry={() => void found.refetch()} what={t("The search failed.")} />}
      {query !== "" && found.data !== undefined && hits.length === 0 && <Empty title={t("Nothing found")}>{t("Try other words, or another library.")}</Empty>}
      {query !== "" && hits.length > 0 && (
        <>
          <div className="flex items-center justify-between text-xs text-muted">
            <p role="status">{t("{n} passages", { n: shown.length })}</p>
            <Button look="quiet" aria-pressed={scoresShown} onClick={toggleScores}>
              {scoresShown ? t("Hide scores") : t("Scores")}
            </Button>
          </div>
          <ol className="flex flex-col rounded-lg border border-line bg-surface">
            {shown.map((hit, i) => (
              <Guarded key={`${hit.library}/${hit.doc_id}/${hit.start}`} what={t("Passage {number}", { number: i + 1 })}>
                <HitRow hit={hit} rank={i + 1} scores={scoresShown} />
              </Guarded>
            ))}
          </ol>
          {shown.length < hits.length && (
            <Button look="quiet" className="self-start" onClick={() => setAll(true)}>
              {t("Show {n} passages that hardly fit", { n: hits.length - shown.length })}
            </Button>
          )}
        </>
      )}
    </Page>
  );
}

function HitRow({ hit, rank, scores }: { hit: SearchHit; rank: number; scores: boolean }) {
  const { read } = useWorkspace();
  const open = (): void => read({ library: hit.library, doc_id: hit.doc_id, title: hit.title, revision: hit.revision, start: hit.start, end: hit.end, page: hit.page });
  const place = placeWords(hit);
  return (
    <li className={`grid gap-x-5 gap-y-2 border-b border-line px-4 py-3.5 last:border-b-0 ${scores ? "md:grid-cols-[1fr_15rem]" : "md:grid-cols-[1fr_5rem]"}`}>
      <div className="min-w-0">
        <div className="flex items-baseline gap-2">
          <span className="w-5 shrink-0 text-right text-xs text-muted tabular-nums">{rank}</span>
          <h2 className="min-w-0 text-sm font-semibold [overflow-wrap:anywhere]">
            <button type="button" onClick={open} className="text-left hover:underline">
              {hit.title}
            </button>
          </h2>
          <FlagTag flags={hit.flags} />
          <BandTag band={hit.band} />
        </div>
        <p className="ml-7 text-2xs text-muted">{place}</p>
        <p className="mt-1.5 ml-7 line-clamp-5 font-serif text-[0.9375rem] leading-[1.5rem] whitespace-pre-line [overflow-wrap:anywhere]">
          {highlightPieces(hit.text, hit.highlights).map((piece, i) => (piece.marked ? <mark key={i}>{piece.text}</mark> : dense(piece.text)))}
        </p>
      </div>
      <div className="flex flex-col justify-between gap-2 max-md:ml-7">
        {scores && <SignalBars signals={hit.signals} />}
        <div className="flex items-center justify-between">
          <span className="text-2xs text-muted tabular-nums">{scores && t("score {score}", { score: fixed(hit.score, 3) })}</span>
          <Button look="quiet" icon="open" onClick={open}>
            {t("Open")}
          </Button>
        </div>
      </div>
    </li>
  );
}
