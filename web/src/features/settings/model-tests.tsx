import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "@/api/http";
import type { ModelsResponse } from "@/api/types";
import { Banner } from "@/components/ui/banner";
import { Button } from "@/components/ui/button";
import { Select } from "@/components/ui/field";
import { Failure } from "@/components/ui/states";
import { t } from "@/lib/language";
import { chatModels } from "@/lib/models";

/** What tests of models found, and the button that starts one; its job shows how far it is. */
export function ModelTests({ list }: { list: ModelsResponse }) {
  const [model, setModel] = useState("");
  const client = useQueryClient();
  const test = useMutation({
    mutationFn: (name: string) => call("POST", "api/v1/models/test", { model: name === "" ? null : name }),
    onSettled: () => {
      for (const key of ["models", "jobs"]) void client.invalidateQueries({ queryKey: [key] });
    },
  });
  const names = chatModels(list);
  return (
    <div className="mt-3 flex flex-col gap-2">
      {list.tests.length > 0 && (
        <ul aria-label={t("Tests of models")} className="text-sm">
          {list.tests.map((one) => (
            <li key={one.model}>{one.advice}</li>
          ))}
        </ul>
      )}
      <div className="flex flex-wrap items-center gap-2">
        {names.length > 0 && (
          <Select
            label={t("Model to test")}
            value={model}
            options={[{ value: "", label: t("Default model") }, ...names.map((name) => ({ value: name, label: name }))]}
            onValue={setModel}
          />
        )}
        <Button onClick={() => test.mutate(model)} disabled={test.isPending} title={t("Asks 24 built-in questions about built-in passages; what it finds decides how the model is asked")}>
          {t("Test this model")}
        </Button>
      </div>
      {test.isError && <Failure error={test.error} what={t("It did not start.")} />}
      {test.isSuccess && <Banner tone="good">{t("It is under way; Jobs shows how far it is.")}</Banner>}
    </div>
  );
}
