import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { call } from "@/api/http";
import { shares } from "@/api/queries";
import type { MadeShare } from "@/api/types";
import { Banner } from "@/components/ui/banner";
import { Button } from "@/components/ui/button";
import { Dialog } from "@/components/ui/dialog";
import { Input } from "@/components/ui/field";
import { Failure, Skeleton } from "@/components/ui/states";
import { useCopied } from "@/hooks/use-copied";
import { ago } from "@/lib/format";
import { t } from "@/lib/language";

/** Makes a link to an answer, shows it this once, and lists those that are open. */
export function ShareDialog({ answerId, open, onClose }: { answerId: string; open: boolean; onClose: () => void }) {
  return (
    <Dialog title={t("Share this answer")} open={open} onClose={onClose}>
      <div className="flex flex-col gap-3 text-sm text-ink">
        <p className="text-muted">{t("Who has the link reads this answer with its quotes, as it is now, without a key. Nothing else opens with it.")}</p>
        <NewLink answerId={answerId} />
        <ShareLinks answerId={answerId} />
      </div>
    </Dialog>
  );
}

function NewLink({ answerId }: { answerId: string }) {
  const client = useQueryClient();
  const { state, copy } = useCopied();
  const make = useMutation({
    mutationFn: () => call<MadeShare>("POST", `api/v1/answers/${encodeURIComponent(answerId)}/share`),
    onSuccess: () => void client.invalidateQueries({ queryKey: ["shares"] }),
  });
  if (make.data === undefined) {
    return (
      <>
        {make.isError && <Failure error={make.error} what={t("That did not work.")} />}
        <Button look="primary" className="self-start" disabled={make.isPending} onClick={() => make.mutate()}>
          {t("Make a link")}
        </Button>
      </>
    );
  }
  const link = new URL(make.data.path, window.location.href).href;
  return (
    <Banner tone="good">
      <p>{t("The link is shown this once; copy it now.")}</p>
      <p className="mt-1.5 flex gap-1.5">
        <Input label={t("Link to the shared answer")} readOnly value={link} onFocus={(event) => event.target.select()} />
        <Button icon="copy" onClick={() => copy(link)}>
          {state === "copied" ? t("Copied") : t("Copy")}
        </Button>
      </p>
      {state === "failed" && <p className="mt-1">{t("The browser does not allow copying here")}</p>}
    </Banner>
  );
}

/** The links that open an answer, or any, each with an end to it. */
export function ShareLinks({ answerId }: { answerId: string | null }) {
  const client = useQueryClient();
  const list = useQuery(shares(answerId));
  const revoke = useMutation({
    mutationFn: (id: string) => call("DELETE", `api/v1/shares/${encodeURIComponent(id)}`),
    onSettled: () => void client.invalidateQueries({ queryKey: ["shares"] }),
  });
  if (list.isPending) return <Skeleton lines={1} />;
  if (list.isError) return <Failure error={list.error} onRetry={() => void list.refetch()} />;
  if (list.data.shares.length === 0) return <p className="text-sm text-muted">{t("No answer is open by a link.")}</p>;
  return (
    <>
      {revoke.isError && <Failure error={revoke.error} what={t("That did not work.")} />}
      <ul aria-label={t("Shared answers")} className="flex flex-col">
        {list.data.shares.map((share) => (
          <li key={share.id} className="flex items-center gap-3 border-t border-line py-1.5 text-sm first:border-t-0">
            <span className="min-w-0 flex-1">
              {answerId === null && <span className="line-clamp-2 [overflow-wrap:anywhere]">{share.question}</span>}
              <span className="block text-xs text-muted">{t("Shared {when}", { when: ago(share.created_at) })}</span>
            </span>
            <Button look="quiet" disabled={revoke.isPending} onClick={() => revoke.mutate(share.id)}>
              {t("Revoke")}
            </Button>
          </li>
        ))}
      </ul>
    </>
  );
}
