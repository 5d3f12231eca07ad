import * as DropdownMenu from "@radix-ui/react-dropdown-menu";
import * as RadixPopover from "@radix-ui/react-popover";
import type { ReactElement, ReactNode } from "react";
import { IconButton } from "./button";
import type { IconName } from "./icon";

const PANEL = "arrive z-30 rounded-lg border border-line-strong bg-surface p-1.5 text-ink shadow-xl max-h-(--radix-popper-available-height) overflow-y-auto";
const PLACE = { sideOffset: 4, collisionPadding: 8 } as const;

/** A panel that opens where there is room; closes on Escape and on a click elsewhere. */
export function Popover({ trigger, label, children }: { trigger: ReactElement; label: string; children: ReactNode }) {
  return (
    <RadixPopover.Root>
      <RadixPopover.Trigger asChild>{trigger}</RadixPopover.Trigger>
      <RadixPopover.Portal>
        <RadixPopover.Content {...PLACE} aria-label={label} className={`${PANEL} w-[min(26rem,calc(100vw-1rem))]`}>
          {children}
        </RadixPopover.Content>
      </RadixPopover.Portal>
    </RadixPopover.Root>
  );
}

/** What a menu lists: a name and what it does, or where it leads. */
export type Action = readonly [name: string, act: (() => void) | string];

/** A menu of actions that opens where there is room. */
export function ActionMenu({ icon = "more", label, actions, trigger }: { icon?: IconName; label: string; actions: readonly Action[]; trigger?: ReactElement }) {
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger asChild>{trigger ?? <IconButton icon={icon} label={label} />}</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content {...PLACE} align="end" aria-label={label} className={`${PANEL} min-w-48`}>
          {actions.map(([name, act]) =>
            typeof act === "string" ? (
              <DropdownMenu.Item key={name} asChild className={ITEM}>
                <a href={act}>{name}</a>
              </DropdownMenu.Item>
            ) : (
              <DropdownMenu.Item key={name} onSelect={act} className={ITEM}>
                {name}
              </DropdownMenu.Item>
            ),
          )}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

const ITEM = "block w-full cursor-pointer rounded-md px-2 py-1.5 text-left text-sm outline-none data-highlighted:bg-sunken pointer-coarse:py-2.5";
