import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "@/api/http";
import { host } from "@/api/queries";
import type { ChosenHost } from "@/api/types";
import { Banner } from "@/components/ui/banner";
import { Button } from "@/components/ui/button";
import { Input } from "@/components/ui/field";
import { Failure } from "@/components/ui/states";
import { t } from "@/lib/language";

const EXAMPLE = "https://api.example.com/v1";

/** A model of a host that speaks OpenAI's protocol; its key goes to the server once and comes back never. */
export function HostForm() {
  const { data } = useQuery(host);
  // Who may not choose models sees nothing of it.
  if (data === undefined) return null;
  return (
    <details className="mt-3 text-sm" open={data.base_url !== ""}>
      <summary className="font-medium">{t("A model of another host")}</summary>
      {data.overruled_by !== "" ? (
        <p className="mt-2 text-muted">{t("The environment decides: {settings}. Take it out and start the server again to choose a host here.", { settings: data.overruled_by })}</p>
      ) : (
        <Fields key={`${data.base_url} ${data.model}`} chosen={data} />
      )}
    </details>
  );
}

function Fields({ chosen }: { chosen: ChosenHost }) {
  const client = useQueryClient();
  const [address, setAddress] = useState(chosen.base_url);
  const [model, setModel] = useState(chosen.model);
  const [key, setKey] = useState("");
  const refresh = (): void => {
    for (const one of ["host", "models", "health", "diagnostics"]) void client.invalidateQueries({ queryKey: [one] });
  };
  const choose = useMutation({
    mutationFn: () => call<ChosenHost>("PUT", "api/v1/models/host", { base_url: address.trim(), model: model.trim(), api_key: key === "" ? null : key }),
    onSuccess: () => setKey(""),
    onSettled: refresh,
  });
  const forget = useMutation({ mutationFn: () => call("PUT", "api/v1/models/answering", { model: null }), onSettled: refresh });
  const keeps = chosen.has_key && address.trim() === chosen.base_url;
  return (
    <form
      aria-label={t("A model of another host")}
      className="mt-2 flex max-w-xl flex-col gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        choose.mutate();
      }}
    >
      <p className="text-muted">{t("Any host that speaks OpenAI’s protocol. Questions and the passages for them go there. The key stays in a file of the server that its owner alone reads.")}</p>
      <Input label={t("Address of the host")} type="url" required placeholder={EXAMPLE} value={address} onChange={(event) => setAddress(event.target.value)} />
      <div className="flex gap-2 max-sm:flex-col">
        <Input label={t("Model on the host")} required placeholder={t("Model on the host")} value={model} onChange={(event) => setModel(event.target.value)} />
        <Input label={t("Key of the host")} type="password" autoComplete="off" placeholder={keeps ? t("The key is kept; type another to replace it") : t("Key of the host")} value={key} onChange={(event) => setKey(event.target.value)} />
      </div>
      {choose.isError && <Failure error={choose.error} what={t("That did not work.")} />}
      {forget.isError && <Failure error={forget.error} what={t("That did not work.")} />}
      {choose.isSuccess && <Banner tone="good">{t("It answers from the next question on.")}</Banner>}
      <div className="flex gap-2">
        <Button type="submit" disabled={address.trim() === "" || model.trim() === "" || choose.isPending}>
          {t("Use this")}
        </Button>
        {chosen.base_url !== "" && (
          <Button disabled={forget.isPending} onClick={() => forget.mutate()}>
            {t("Forget host and key")}
          </Button>
        )}
      </div>
    </form>
  );
}
