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
import { byline, plural, sentence } from "@/lib/format";
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
    <Page title="Search" lead="Passages that match, best first. No model is asked.">
      <div className="flex flex-wrap items-center gap-2">
        <Input label="Search" type="search" autoFocus placeholder="Words, a question, a phrase" value={text} onChange={(event) => typed(event.target.value)} className="min-h-9 flex-1 basis-64 px-3 font-serif text-lg" />
        <Segmented
          label="Library"
          value={library}
          onValue={choose}
          options={[
            { value: "papers", label: "Papers" },
            { value: "public", label: "Public" },
            { value: "all", label: "All" },
          ]}
        />
        <Select label="Number of hits" value={count} onValue={setCount} options={COUNTS.map((value) => ({ value, label: `${value} hits` }))} />
      </div>
      <FilterBar />
      {found.data?.notices.map((notice) => (
        <Banner key={notice.code}>{sentence(notice.message)}</Banner>
      ))}
      {query === "" && <Empty title="Type to search">Meaning and words are searched together. Results follow as you type.</Empty>}
      {query !== "" && found.isPending && <Skeleton lines={8} label="Searching" />}
      {query !== "" && found.isError && <Failure error={found.error} onRetry={() => void found.refetch()} what="The search failed." />}
      {query !== "" && found.data !== undefined && hits.length === 0 && <Empty title="Nothing found">Try other words, or another library.</Empty>}
      {query !== "" && hits.length > 0 && (
        <>
          <div className="flex items-center justify-between text-xs text-muted">
            <p role="status">{plural(shown.length, "passage")}</p>
            <Button look="quiet" aria-pressed={scoresShown} onClick={toggleScores}>
              {scoresShown ? "Hide scores" : "Scores"}
            </Button>
          </div>
          <ol className="flex flex-col rounded-lg border border-line bg-surface">
            {shown.map((hit, i) => (
              <Guarded key={`${hit.library}/${hit.doc_id}/${hit.start}`} what={`Passage ${i + 1}`}>
                <HitRow hit={hit} rank={i + 1} scores={scoresShown} />
              </Guarded>
            ))}
          </ol>
          {shown.length < hits.length && (
            <Button look="quiet" className="self-start" onClick={() => setAll(true)}>
              Show {plural(hits.length - shown.length, "passage")} that hardly fit
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
  const place = [hit.sample ? "sample" : "", byline(hit.authors, hit.year), hit.page === null ? "" : `p. ${hit.page}`, hit.section === "body" ? "" : hit.section, hit.library].filter(Boolean).join(" · ");
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
        <p className="mt-1.5 ml-7 line-clamp-5 font-serif text-[0.9375rem] leading-[1.5rem] [overflow-wrap:anywhere]">
          {highlightPieces(hit.text, hit.highlights).map((piece, i) => (piece.marked ? <mark key={i}>{piece.text}</mark> : piece.text))}
        </p>
      </div>
      <div className="flex flex-col justify-between gap-2 max-md:ml-7">
        {scores && <SignalBars signals={hit.signals} />}
        <div className="flex items-center justify-between">
          <span className="text-2xs text-muted tabular-nums">{scores && `score ${hit.score.toFixed(3)}`}</span>
          <Button look="quiet" icon="open" onClick={open}>
            Open
          </Button>
        </div>
      </div>
    </li>
  );
}
