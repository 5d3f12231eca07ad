import { useQuery } from "@tanstack/react-query";
import { folders } from "@/api/queries";
import type { SyncedFolder } from "@/api/types";
import { Tag } from "@/components/ui/tag";
import { ago, LIBRARIES, sentence } from "@/lib/format";
import { t } from "@/lib/language";

/** Folders that `documind sync` keeps a library equal to: whether changes are followed, the last look, what failed. */
export function SyncedFolders() {
  const { data } = useQuery(folders);
  const found = data?.folders ?? [];
  if (found.length === 0) return null;
  const failed = found.reduce((sum, one) => sum + one.failed.length, 0);
  return (
    <details className="text-xs text-muted">
      <summary className="hover:text-ink">
        {t("{n} synced folders", { n: found.length })}
        {failed > 0 && <span className="text-bad">, {t("{n} failed", { n: failed })}</span>}
      </summary>
      <ul aria-label={t("Synced folders")} className="mt-1.5 flex max-h-[30vh] flex-col gap-2 overflow-y-auto">
        {found.map((folder) => (
          <Folder key={`${folder.library} ${folder.folder}`} folder={folder} />
        ))}
      </ul>
    </details>
  );
}

function Folder({ folder: { library, folder, documents, looked_at, watched, failed } }: { folder: SyncedFolder }) {
  const [machine = "", ...path] = folder.split(":");
  return (
    <li>
      <p className="[overflow-wrap:anywhere] text-ink" title={t("On {machine}", { machine })}>
        {path.join(":") || folder}
      </p>
      <p className="flex flex-wrap items-center gap-x-1.5">
        {watched && <Tag tone="good">{t("followed")}</Tag>}
        <span>{t(LIBRARIES[library])}</span>
        <span>{t("{n} documents", { n: documents })}</span>
        <span>{t("compared {ago}", { ago: ago(looked_at) })}</span>
      </p>
      {failed.map(({ file, reason }) => (
        <p key={file} className="[overflow-wrap:anywhere] text-bad">
          {file}: {sentence(reason)}
        </p>
      ))}
    </li>
  );
}
