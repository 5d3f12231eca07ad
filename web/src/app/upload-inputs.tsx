import { useEffect, useRef, useState, type RefObject } from "react";
import { inTab, useUploads } from "@/hooks/use-uploads";
import { uploadLibrary, useWorkspace } from "@/hooks/use-workspace";
import { droppedFiles, pickedFiles } from "@/lib/dropped-files";
import { LIBRARY_NAMES } from "@/lib/format";
import { t } from "@/lib/language";

export interface UploadInputs {
  files: RefObject<HTMLInputElement | null>;
  folder: RefObject<HTMLInputElement | null>;
}

export function useUploadInputs(): UploadInputs & { pickFiles: () => void; pickFolder: () => void } {
  const files = useRef<HTMLInputElement>(null);
  const folder = useRef<HTMLInputElement>(null);
  return { files, folder, pickFiles: () => files.current?.click(), pickFolder: () => folder.current?.click() };
}

/** Makes a file input choose a folder; React's types do not know the attribute. */
const FOLDER = { webkitdirectory: "" };

/** The file inputs, in the page on every view, and the sheet that catches a drop anywhere. */
export function UploadInputs({ files, folder }: UploadInputs) {
  const { add, uploads } = useUploads();
  const unsent = uploads.some(inTab);
  const workspace = useWorkspace();
  const [over, setOver] = useState(false);
  useEffect(() => {
    let depth = 0;
    const carriesFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes("Files") ?? false;
    const enter = (event: DragEvent): void => {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      depth += 1;
      setOver(true);
    };
    const move = (event: DragEvent): void => {
      if (carriesFiles(event)) event.preventDefault();
    };
    const leave = (): void => {
      depth = Math.max(0, depth - 1);
      if (depth === 0) setOver(false);
    };
    const drop = (event: DragEvent): void => {
      depth = 0;
      setOver(false);
      if (!carriesFiles(event) || event.dataTransfer === null) return;
      event.preventDefault();
      void droppedFiles(event.dataTransfer).then(add);
    };
    window.addEventListener("dragenter", enter);
    window.addEventListener("dragover", move);
    window.addEventListener("dragleave", leave);
    window.addEventListener("drop", drop);
    return () => {
      window.removeEventListener("dragenter", enter);
      window.removeEventListener("dragover", move);
      window.removeEventListener("dragleave", leave);
      window.removeEventListener("drop", drop);
    };
  }, [add]);
  useEffect(() => {
    if (!unsent) return;
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault();
    window.addEventListener("beforeunload", warn);
    return () => window.removeEventListener("beforeunload", warn);
  }, [unsent]);
  const onChange = (input: HTMLInputElement): void => {
    add(pickedFiles(input.files));
    // The same file can be chosen again after it failed.
    input.value = "";
  };
  return (
    <section aria-label={t("Add files")}>
      <input ref={files} type="file" multiple data-testid="upload" aria-label={t("Files to add")} className="sr-only" tabIndex={-1} onChange={(event) => onChange(event.currentTarget)} />
      <input
        ref={folder}
        {...FOLDER}
        type="file"
        multiple
        data-testid="upload-folder"
        aria-label={t("Folder to add")}
        className="sr-only"
        tabIndex={-1}
        onChange={(event) => onChange(event.currentTarget)}
      />
      {over && (
        <div className="pointer-events-none fixed inset-3 z-40 flex items-center justify-center rounded-lg border-2 border-dashed border-accent bg-accent-soft/90">
          <p className="font-serif text-xl">{t("Drop to add to {library}", { library: t(LIBRARY_NAMES[uploadLibrary(workspace)]) })}</p>
        </div>
      )}
    </section>
  );
}
