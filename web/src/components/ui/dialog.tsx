import { useEffect, useId, useRef, type ReactNode } from "react";
import { t } from "@/lib/language";
import { IconButton } from "./button";

/** A modal on the platform's own dialog: focus stays inside, Escape closes, focus returns. */
export function Dialog({ title, open, onClose, children, closable = true }: { title: string; open: boolean; onClose: () => void; children: ReactNode; closable?: boolean }) {
  const ref = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const dialog = ref.current;
    if (dialog === null) return;
    if (open && !dialog.open) dialog.showModal();
    if (!open && dialog.open) dialog.close();
  }, [open]);
  return (
    <dialog
      ref={ref}
      aria-labelledby={heading}
      onClose={onClose}
      onCancel={(event) => {
        if (!closable) event.preventDefault();
      }}
      onClick={(event) => {
        if (closable && event.target === ref.current) onClose();
      }}
      className="m-auto w-[min(34rem,calc(100vw-2rem))] rounded-lg border border-line-strong bg-surface p-0 text-ink shadow-2xl backdrop:bg-[rgb(0_0_0/0.45)]"
    >
      {open && (
        <div className="p-5">
          <div className="mb-3 flex items-center justify-between gap-4">
            <h2 id={heading} className="font-serif text-xl">
              {title}
            </h2>
            {closable && <IconButton icon="close" label={t("Close")} onClick={onClose} />}
          </div>
          {children}
        </div>
      )}
    </dialog>
  );
}
