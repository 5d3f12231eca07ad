import { useEffect, useId, useRef, useState, type ReactNode } from "react";
import { IconButton } from "./button";
import type { IconName } from "./icon";

/** A small panel under a button; closes on Escape, on a click elsewhere, and when told. */
export function Popover({ icon, label, children, align = "right" }: { icon: IconName; label: string; children: (close: () => void) => ReactNode; align?: "left" | "right" }) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const id = useId();
  useEffect(() => {
    if (!open) return undefined;
    const away = (event: PointerEvent): void => {
      if (event.target instanceof Node && box.current?.contains(event.target) !== true) setOpen(false);
    };
    document.addEventListener("pointerdown", away);
    return () => document.removeEventListener("pointerdown", away);
  }, [open]);
  return (
    <div
      ref={box}
      className="relative"
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !open) return;
        event.stopPropagation();
        setOpen(false);
        box.current?.querySelector("button")?.focus();
      }}
    >
      <IconButton icon={icon} label={label} aria-expanded={open} aria-controls={open ? id : undefined} onClick={() => setOpen((was) => !was)} />
      {open && (
        <div id={id} className={`arrive absolute top-full z-30 mt-1 w-72 rounded-lg border border-line-strong bg-surface p-1.5 shadow-xl ${align === "right" ? "right-0" : "left-0"}`}>
          {children(() => setOpen(false))}
        </div>
      )}
    </div>
  );
}

/** A popover of actions; it closes before one acts. */
export function ActionMenu({ icon, label, actions }: { icon: IconName; label: string; actions: readonly (readonly [string, () => void])[] }) {
  return (
    <Popover icon={icon} label={label}>
      {(close) => (
        <ul>
          {actions.map(([name, act]) => (
            <li key={name}>
              <button
                type="button"
                className="w-full rounded-md px-2 py-1.5 text-left text-sm text-ink hover:bg-sunken"
                onClick={() => {
                  close();
                  act();
                }}
              >
                {name}
              </button>
            </li>
          ))}
        </ul>
      )}
    </Popover>
  );
}
