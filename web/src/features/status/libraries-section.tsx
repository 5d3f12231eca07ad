import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "@/api/http";
import { diagnostics, libraries } from "@/api/queries";
import type { Library, LibraryRecord } from "@/api/types";
import { Button } from "@/components/ui/button";
import { Dialog } from "@/components/ui/dialog";
import { Input } from "@/components/ui/field";
import { Meter } from "@/components/ui/meter";
import { Section } from "@/components/ui/section";
import { Failure, Skeleton } from "@/components/ui/states";
import { Table } from "@/components/ui/table";
import { behind, bytes, count, LIBRARIES, percent } from "@/lib/format";
import { t, tx } from "@/lib/language";
import { LibraryNotices } from "./library-notices";

/** Counts of each library, what it is indexed with, and how far each projection is. */
export function LibrariesSection() {
  const all = useQuery({ ...libraries, refetchInterval: 3000 });
  const about = useQuery({ ...diagnostics, refetchInterval: 5000 });
  const [clearing, setClearing] = useState<LibraryRecord | null>(null);
  return (
    <Section title={t("Libraries")}>
      {all.isPending && <Skeleton lines={3} />}
      {all.isError && all.data === undefined && <Failure error={all.error} onRetry={() => void all.refetch()} />}
      {all.data !== undefined && (
        <Table stacked caption={t("Libraries")} head={[t("Library"), t("Documents"), t("Passages"), t("By meaning"), t("Size"), t("Meaning by"), t("State"), <span className="sr-only">{t("Clear")}</span>]}>
          {all.data.libraries.map((library) => (
            <tr key={library.library}>
              <td className="font-medium">{t(LIBRARIES[library.library])}</td>
              <td>{count(library.documents)}</td>
              <td>{count(library.chunks)}</td>
              <td className="min-w-28">
                {library.chunks === 0 ? "–" : percent(library.embedded / library.chunks)}
                {library.embedded < library.chunks && <Meter value={library.embedded / library.chunks} label={t("Found by meaning in {library}", { library: library.library })} className="mt-1" />}
              </td>
              <td>{bytes(library.bytes)}</td>
              <td>
                {library.chunks === 0 ? t("nothing yet") : library.embedding.embedder}
                {library.chunks > 0 && !library.embedding.reachable && `, ${t("away")}`}
              </td>
              <td>{library.build === "ready" ? t("ready") : library.build}</td>
              <td className="text-right max-sm:justify-end!">
                <Button look="quiet" icon="trash" disabled={library.documents === 0} onClick={() => setClearing(library)}>
                  {t("Clear")}
                </Button>
              </td>
            </tr>
          ))}
        </Table>
      )}
      {all.data?.libraries.map((library) => <LibraryNotices key={library.library} library={library} />)}
      {about.data !== undefined && <Projections lags={about.data.lags} changes={about.data.watermarks["changes"] ?? 0} />}
      {clearing !== null && <ClearDialog library={clearing} onClose={() => setClearing(null)} />}
    </Section>
  );
}

/** How many of the catalog's changes each projection has yet to apply. Their numbers are shared by both libraries, so only the server can count them. */
function Projections({ lags, changes }: { lags: Readonly<Record<string, number>>; changes: number }) {
  const projections = Object.entries(lags);
  if (projections.length === 0) return null;
  return (
    <div className="mt-4">
      <h3 className="mb-2 text-xs font-semibold text-muted">{t("Search indexes, after {n} changes", { n: changes })}</h3>
      <ul className="grid gap-x-6 gap-y-2 sm:grid-cols-3">
        {projections.map(([name, lag]) => (
          <li key={name}>
            <div className="flex justify-between text-xs">
              <span>{name}</span>
              <span className="text-muted tabular-nums">{behind(lag)}</span>
            </div>
            <Meter value={changes === 0 ? 1 : Math.max(0, 1 - lag / changes)} label={t("Index {name}", { name })} tone={lag === 0 ? "good" : "info"} className="mt-1" />
          </li>
        ))}
      </ul>
    </div>
  );
}

function ClearDialog({ library, onClose }: { library: LibraryRecord; onClose: () => void }) {
  const [typed, setTyped] = useState("");
  const client = useQueryClient();
  const clearing = useMutation({
    mutationFn: (name: Library) => call("DELETE", `api/v1/libraries/${name}/documents`, undefined, { confirm: name }),
    onSuccess: onClose,
    onSettled: () => void client.invalidateQueries(),
  });
  return (
    <Dialog title={t("Clear {library}", { library: t(LIBRARIES[library.library]) })} open onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (typed === library.library) clearing.mutate(library.library);
        }}
      >
        <p className="mb-3 text-sm text-muted">
          {tx("This removes {n} documents with their passages and original files. It cannot be undone. Type {library} to confirm.", { n: library.documents, library: <strong className="text-ink">{library.library}</strong> })}
        </p>
        <div className="flex gap-2">
          <Input label={t("Name of the library")} value={typed} autoFocus onChange={(event) => setTyped(event.target.value)} />
          <Button look="danger" type="submit" disabled={typed !== library.library || clearing.isPending}>
            {t("Clear")}
          </Button>
        </div>
        {clearing.isError && (
          <div className="mt-3">
            <Failure error={clearing.error} />
          </div>
        )}
      </form>
    </Dialog>
  );
}
