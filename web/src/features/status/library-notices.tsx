import { useMutation, useQueryClient } from "@tanstack/react-query";
import { call } from "@/api/http";
import type { LibraryRecord } from "@/api/types";
import { Banner } from "@/components/ui/banner";
import { Button } from "@/components/ui/button";
import { Failure } from "@/components/ui/states";
import { t } from "@/lib/language";
import { noticeWords } from "@/lib/server-words";

/** What is to be said of a library's vectors: a model that is offered, with the button that takes it, and a host that is away. */
export function LibraryNotices({ library }: { library: LibraryRecord }) {
  const client = useQueryClient();
  const reembed = useMutation({
    mutationFn: () => call("POST", "api/v1/reembed", { library: library.library }),
    onSettled: () => void client.invalidateQueries({ queryKey: ["jobs"] }),
  });
  const away = library.chunks > 0 && !library.embedding.reachable;
  return (
    <>
      {away && (
        <Banner tone="warn" className="mt-2">
          {t("{embedder} embeds {library} and cannot be reached: {why}. Until then passages are found by their words alone.", { embedder: library.embedding.embedder, library: library.library, why: library.embedding.detail })}
        </Banner>
      )}
      {library.notices.map((notice) => (
        <Banner
          key={notice.code}
          className="mt-2"
          action={
            notice.code === "reembed_offered" ? (
              <Button look="quiet" disabled={reembed.isPending || reembed.isSuccess} onClick={() => reembed.mutate()} className="-my-0.5 text-accent">
                {reembed.isSuccess ? t("Under way") : t("Re-embed {library}", { library: library.library })}
              </Button>
            ) : undefined
          }
        >
          {noticeWords(notice)}
        </Banner>
      ))}
      {reembed.isError && <Failure error={reembed.error} what={t("That did not work.")} />}
    </>
  );
}
