import { ConnectOllama } from "@/components/connect-ollama";
import { Dialog } from "@/components/ui/dialog";
import { Kbd } from "@/components/ui/kbd";
import { type Message, t } from "@/lib/language";

const KEYS: readonly (readonly [Message, readonly (readonly [string, Message])[]])[] = [
  [
    "Anywhere",
    [
      ["/", "Go to the question"],
      ["?", "This sheet"],
      ["g a", "Ask"],
      ["g s", "Search"],
      ["g c", "Check a text"],
      ["g i", "Inspect"],
      ["g e", "Evaluate"],
      ["g t", "Status"],
      ["g o", "Settings"],
      ["t", "Light, dark, as the system"],
    ],
  ],
  [
    "Ask",
    [
      ["Enter", "Send the question"],
      ["Shift Enter", "New line"],
      ["Escape", "Stop the answer; close the document"],
      ["n", "New conversation"],
      ["j", "Next citation"],
      ["k", "Previous citation"],
      ["o", "Open the cited document"],
      ["u", "Add files"],
      ["f", "Find a document"],
      ["[", "Hide or show the left side"],
    ],
  ],
];

export function HelpSheet({ open, onClose }: { open: boolean; onClose: () => void }) {
  return (
    <Dialog title={t("Help")} open={open} onClose={onClose}>
      <section className="mb-5 text-sm">
        <h3 className="mb-1 text-xs font-semibold text-muted">{t("First steps")}</h3>
        <p>
          {t("Add files, ask a question, then press a number in the answer: the document opens at the exact words. Tick documents to ask only those.")}
        </p>
      </section>
      <section className="mb-5 text-sm">
        <h3 className="mb-1 text-xs font-semibold text-muted">{t("Connect a language model")}</h3>
        <ConnectOllama />
      </section>
      <section aria-label={t("Keyboard")} className="grid gap-6 max-sm:hidden sm:grid-cols-2">
        {KEYS.map(([group, keys]) => (
          <section key={group}>
            <h3 className="mb-2 text-xs font-semibold text-muted">{t(group)}</h3>
            <dl className="flex flex-col gap-1.5">
              {keys.map(([key, meaning]) => (
                <div key={key} className="flex items-center justify-between gap-3">
                  <dt className="order-2 flex gap-1">
                    {key.split(" ").map((one) => (
                      <Kbd key={one}>{one}</Kbd>
                    ))}
                  </dt>
                  <dd>{t(meaning)}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </section>
    </Dialog>
  );
}
