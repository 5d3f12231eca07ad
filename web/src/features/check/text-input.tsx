import { useMutation } from "@tanstack/react-query";
import { useId } from "react";
import { textOf } from "@/api/checks";
import { FileButton } from "@/components/ui/button";
import { Failure } from "@/components/ui/states";
import { t } from "@/lib/language";

/** A text to paste, or to take from a file; what a file holds can be edited before it is used. */
export function TextInput({ label, value, onValue, rows }: { label: string; value: string; onValue: (value: string) => void; rows: number }) {
  const id = useId();
  const reading = useMutation({ mutationFn: textOf, onSuccess: (read) => onValue(read.text) });
  return (
    <div className="flex flex-col gap-1">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <label htmlFor={id} className="text-xs font-semibold text-muted">
          {label}
        </label>
        <FileButton
          label={reading.isPending ? t("Reading") : t("Open a file")}
          onFile={(file) => {
            if (file !== undefined) reading.mutate(file);
          }}
        />
      </div>
      <textarea
        id={id}
        rows={rows}
        value={value}
        onChange={(event) => onValue(event.target.value)}
        className="w-full resize-y rounded-md border border-line-strong bg-surface px-3 py-2 font-serif text-[0.9375rem] leading-6 text-ink placeholder:text-muted"
      />
      {reading.isError && <Failure error={reading.error} what={t("The file could not be read.")} />}
    </div>
  );
}
