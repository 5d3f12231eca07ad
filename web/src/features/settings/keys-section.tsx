import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type SubmitEvent } from "react";
import { ApiError, call } from "@/api/http";
import { rememberKey } from "@/api/key";
import { keys } from "@/api/queries";
import type { KeyRecord, KeyScope, Library, MadeKey, NewKey } from "@/api/types";
import { Banner } from "@/components/ui/banner";
import { Button, IconButton } from "@/components/ui/button";
import { Input, Select } from "@/components/ui/field";
import { Section } from "@/components/ui/section";
import { Failure, Skeleton } from "@/components/ui/states";
import { Table } from "@/components/ui/table";
import { useCopied } from "@/hooks/use-copied";
import { ago, LIBRARIES, optionsOf } from "@/lib/format";
import { type Message, t, tx } from "@/lib/language";

/** What a key may do; the set is the contract's. */
const SCOPES: Record<KeyScope, readonly [name: Message, opens: Message]> = {
  read: ["read", "documents, search, earlier answers"],
  ask: ["ask", "questions, checks, conversations"],
  write: ["write", "adding, changing and deleting documents"],
  admin: ["everything", "all of these, and keys, models, upkeep"],
};
const NAMES = Object.keys(SCOPES) as KeyScope[];
const NAME = "[A-Za-z0-9][A-Za-z0-9._\\-]{0,63}";

/** Who may use this server: keys, what each may do, a new one, an end to one. */
export function KeysSection() {
  const list = useQuery(keys);
  const kept = list.data?.keys ?? [];
  return (
    <Section title={t("Keys")}>
      {list.isPending && <Skeleton lines={2} />}
      {list.isError && list.data === undefined && <Failure error={list.error} what={t("Keys cannot be shown.")} onRetry={() => void list.refetch()} />}
      {list.data !== undefined && (
        <div className="flex flex-col gap-3">
          <p className="text-sm text-muted">
            {list.data.open ? t("Requests need no key: all who reach this server may do everything.") : t("Programs and pages that use this server send a key; each opens what stands next to it.")}
          </p>
          {kept.length > 0 && (
            <Table stacked caption={t("Keys")} head={[t("Name"), t("Opens"), t("Library"), t("Last used"), ""]}>
              {kept.map((key) => (
                <KeyRow key={key.name} kept={key} />
              ))}
            </Table>
          )}
          <NewKeyForm first={list.data.open} />
        </div>
      )}
    </Section>
  );
}

function KeyRow({ kept: { name, scopes, libraries, used_at } }: { kept: KeyRecord }) {
  const client = useQueryClient();
  const [asking, setAsking] = useState(false);
  const revoke = useMutation({
    mutationFn: (confirm: boolean) => call("DELETE", `api/v1/keys/${encodeURIComponent(name)}`, undefined, { confirm }),
    onSuccess: () => void client.invalidateQueries({ queryKey: ["keys"] }),
  });
  const last = revoke.error instanceof ApiError && revoke.error.problem.code === "conflict";
  const close = (): void => {
    setAsking(false);
    revoke.reset();
  };
  if (asking) {
    return (
      <tr>
        <td colSpan={5} className="max-sm:block! max-sm:text-left! max-sm:before:hidden!">
          <Banner tone="warn">
            {last ? t("“{name}” is the last key: without it everything is open to all who reach this server.", { name }) : t("Revoke “{name}”? What uses it stops working at once.", { name })}
            <span className="mt-1.5 flex flex-wrap gap-1.5">
              <Button look="danger" disabled={revoke.isPending} onClick={() => revoke.mutate(last)}>
                {last ? t("Revoke and open the server") : t("Revoke")}
              </Button>
              <Button onClick={close}>{t("Keep")}</Button>
            </span>
          </Banner>
          {revoke.isError && !last && <Failure error={revoke.error} what={t("That did not work.")} />}
        </td>
      </tr>
    );
  }
  return (
    <tr>
      <td data-label={t("Name")} className="[overflow-wrap:anywhere]">
        {name}
      </td>
      <td data-label={t("Opens")}>{scopes.map((scope) => t(SCOPES[scope][0])).join(", ")}</td>
      <td data-label={t("Library")}>{libraries.map((library) => t(LIBRARIES[library])).join(", ")}</td>
      <td data-label={t("Last used")}>{used_at === null ? t("never") : ago(used_at)}</td>
      <td>
        <IconButton icon="trash" label={t("Revoke {name}", { name })} onClick={() => setAsking(true)} />
      </td>
    </tr>
  );
}

/** Makes a key; the first one of all closes the server, which is said before it is made. */
function NewKeyForm({ first }: { first: boolean }) {
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [chosen, setChosen] = useState<readonly KeyScope[] | null>(null);
  const [library, setLibrary] = useState<Library | "all">("all");
  const [warned, setWarned] = useState(false);
  // Without one that may do everything the page could not make the second key.
  const scopes = chosen ?? (first ? ["admin"] : ["read", "ask"]);
  const make = useMutation({
    mutationFn: (wanted: NewKey) => call<MadeKey>("POST", "api/v1/keys", wanted),
    onSuccess: (made, { confirm }) => {
      // From now on the server refuses this tab as well, unless it sends the key.
      if (confirm === true) rememberKey(made.key);
      setName("");
      setChosen(null);
      setWarned(false);
      void client.invalidateQueries({ queryKey: ["keys"] });
    },
  });
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (first && !warned) setWarned(true);
    else make.mutate({ name, scopes: [...scopes], libraries: library === "all" ? [] : [library], confirm: first });
  };
  return (
    <form aria-label={t("New key")} className="flex flex-col gap-3" onSubmit={submit}>
      {make.data !== undefined && <Shown made={make.data} onClose={() => make.reset()} />}
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <Input
          label={t("Name of the key")}
          placeholder={t("Name of the key, such as laptop")}
          title={t("Letters, digits, dot, line and underline; at most 64")}
          className="max-w-64"
          required
          pattern={NAME}
          autoComplete="off"
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
        <span className="w-36 [&_select]:border-line-strong [&_select]:text-ink">
          <Select label={t("Library of the key")} className="w-full" value={library} options={optionsOf(LIBRARIES)} onValue={setLibrary} />
        </span>
      </div>
      <fieldset className="grid gap-x-6 gap-y-1.5 sm:grid-cols-2">
        <legend className="sr-only">{t("What it opens")}</legend>
        {NAMES.map((scope) => (
          <label key={scope} className="flex items-start gap-2 text-sm">
            <input
              type="checkbox"
              className="mt-1 accent-accent"
              checked={scopes.includes(scope)}
              onChange={(event) => setChosen(NAMES.filter((one) => (one === scope ? event.target.checked : scopes.includes(one))))}
            />
            <span>
              {t(SCOPES[scope][0])}
              <span className="block text-xs text-muted">{t(SCOPES[scope][1])}</span>
            </span>
          </label>
        ))}
      </fieldset>
      {warned && first && (
        <Banner tone="warn">
          {t("This is the first key. From then on this page and every program have to send one; commands on the computer of the server go on without. This tab uses the new key at once.")}
          {!scopes.includes("admin") && ` ${t("It does not open keys: more of them could only be made there, with documind keys add.")}`}
        </Banner>
      )}
      {make.isError && <Failure error={make.error} what={t("The key was not made.")} />}
      <div className="flex gap-2">
        <Button type="submit" icon="plus" disabled={name === "" || scopes.length === 0 || make.isPending}>
          {first && warned ? t("Make it and close the server") : t("Make a key")}
        </Button>
        {warned && first && <Button onClick={() => setWarned(false)}>{t("Cancel")}</Button>}
      </div>
    </form>
  );
}

function Shown({ made, onClose }: { made: MadeKey; onClose: () => void }) {
  const { state, copy } = useCopied();
  return (
    <Banner tone="good" action={<IconButton icon="close" label={t("Close")} onClick={onClose} />}>
      <p>{tx("The key {name}. It is shown this once; keep it now.", { name: <strong className="font-semibold">{made.name}</strong> })}</p>
      <p className="mt-1 flex flex-wrap items-center gap-2">
        <code className="rounded-sm bg-surface px-1.5 py-0.5 text-ink select-all" data-testid="made-key">
          {made.key}
        </code>
        <Button icon="copy" onClick={() => copy(made.key)}>
          {state === "copied" ? t("Copied") : t("Copy")}
        </Button>
        {state === "failed" && t("The browser does not allow copying here")}
      </p>
    </Banner>
  );
}
