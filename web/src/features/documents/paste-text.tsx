import { useState, type SubmitEvent } from "react";
import { Button } from "@/components/ui/button";
import { Dialog } from "@/components/ui/dialog";
import { Input } from "@/components/ui/field";
import { useUploads } from "@/hooks/use-uploads";
import { t } from "@/lib/language";

/** Adds a text that was typed or pasted, as a Markdown file with its title. */
export function PasteText() {
  const [open, setOpen] = useState(false);
  const [title, setTitle] = useState("");
  const [text, setText] = useState("");
  const { add } = useUploads();
  const complete = title.trim() !== "" && text.trim() !== "";
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (!complete) return;
    const name = title.trim().replace(/[\\/:*?"<>|\s]+/g, " ");
    add([{ file: new File([`# ${title.trim()}\n\n${text}\n`], `${name}.md`, { type: "text/markdown" }), path: null }]);
    setTitle("");
    setText("");
    setOpen(false);
  };
  return (
    <>
      <button type="button" onClick={() => setOpen(true)} className="text-accent underline underline-offset-2">
        {t("paste a text")}
      </button>
      <Dialog title={t("Paste a text")} open={open} onClose={() => setOpen(false)}>
        <form onSubmit={submit} className="flex flex-col gap-2 text-left">
          <Input label={t("Title")} placeholder={t("Title")} value={title} maxLength={200} onChange={(event) => setTitle(event.target.value)} />
          <textarea aria-label={t("Text")} rows={10} value={text} onChange={(event) => setText(event.target.value)} className="rounded-md border border-line-strong bg-surface p-2 text-sm" />
          <Button type="submit" disabled={!complete}>
            {t("Add")}
          </Button>
        </form>
      </Dialog>
    </>
  );
}
