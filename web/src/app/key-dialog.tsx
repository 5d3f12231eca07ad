import { useQueryClient } from "@tanstack/react-query";
import { useState, useSyncExternalStore } from "react";
import { keyRequired, onKeyChange, rememberKey } from "@/api/key";
import { Button } from "@/components/ui/button";
import { Dialog } from "@/components/ui/dialog";
import { Input } from "@/components/ui/field";
import { t } from "@/lib/language";

/** Asks for the API key when the server refuses; the key stays in this tab. */
export function KeyDialog() {
  const required = useSyncExternalStore(onKeyChange, keyRequired);
  const client = useQueryClient();
  const [key, setKey] = useState("");
  const [tried, setTried] = useState(false);
  return (
    <Dialog title={t("API key")} open={required} closable={false} onClose={() => undefined}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (key.trim() === "") return;
          rememberKey(key.trim());
          setKey("");
          setTried(true);
          void client.resetQueries();
        }}
      >
        <p className="mb-3 text-sm text-muted">{t("This server asks for a key. It is kept in this tab until you close it, and sent to this server only.")}</p>
        {tried && (
          <p role="alert" className="mb-2 text-sm text-bad">
            {t("The server did not accept that key.")}
          </p>
        )}
        <div className="flex gap-2">
          <Input label={t("API key")} type="password" autoComplete="off" autoFocus value={key} onChange={(event) => setKey(event.target.value)} />
          <Button look="primary" type="submit" disabled={key.trim() === ""}>
            {t("Use key")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
