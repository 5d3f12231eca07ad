import type { LibraryRecord } from "@/api/types";
import { Banner } from "@/components/ui/banner";
import { t } from "@/lib/language";
import { noticeWords } from "@/lib/server-words";

/** What is to be said of a library's vectors. */
export function LibraryNotices({ library }: { library: LibraryRecord }) {
  const away = library.chunks > 0 && !library.embedding.reachable;
  return (
    <>
      {away && (
        <Banner tone="warn" className="mt-2">
          {t("{embedder} embeds {library} and cannot be reached: {why}. Until then passages are found by their words alone.", { embedder: library.embedding.embedder, library: library.library, why: library.embedding.detail })}
        </Banner>
      )}
      {library.notices.map((notice) => (
        <Banner key={notice.code} className="mt-2">
          {noticeWords(notice)}
        </Banner>
      ))}
    </>
  );
}
