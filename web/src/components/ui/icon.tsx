/** Line icons on a 16 px grid, drawn for this page. */
const PATHS = {
  send: "M8 13V3M4 7l4-4 4 4",
  stop: "M4.5 4.5h7v7h-7z",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  close: "M4 4l8 8M12 4l-8 8",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3 14 14",
  summary: "M3 4h10M3 8h10M3 12h5",
  file: "M4 1.5h5.5L12.5 4.5v10h-8.5zM9 1.5v3.5h3.5",
  trash: "M2.5 4h11M6 4V2.5h4V4M4 4l.7 9.5h6.6L12 4M6.7 6.5v4.5M9.3 6.5v4.5",
  undo: "M6 3.5 2.5 7 6 10.5M3 7h6.5a4 4 0 0 1 0 7H7",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  up: "M5 7.5v6H2.5v-6zM5 7.5 8 2c1.2 0 1.8.8 1.6 2L9 6.5h3.5c.8 0 1.3.7 1.1 1.5l-1.1 4.5c-.2.6-.6 1-1.2 1H5",
  down: "M11 8.5v-6h2.5v6zM11 8.5 8 14c-1.2 0-1.8-.8-1.6-2L7 9.5H3.5c-.8 0-1.3-.7-1.1-1.5l1.1-4.5c.2-.6.6-1 1.2-1H11",
  chat: "M2 3h12v8.5H7.5L4.5 14v-2.5H2z",
  quote: "M3 4.5h4v4L5 12M9 4.5h4v4L11 12",
  left: "M10 3 5 8l5 5",
  right: "M6 3l5 5-5 5",
  chevron: "M4 6l4 4 4-4",
  check: "M3 8.5 6.5 12 13 4.5",
  warn: "M8 2 14.5 13.5H1.5zM8 6.5v3.5M8 11.5v.5",
  info: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 7.5V11M8 5v.5",
  sun: "M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6zM8 1.5v1.5M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1.1 1.1M11.5 11.5l1.1 1.1M12.6 3.4l-1.1 1.1M4.5 11.5l-1.1 1.1",
  moon: "M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7z",
  auto: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 2v12M8 4.5l4.5 2M8 8h6M8 11.5l4.5-2",
  help: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM6.2 6.3C6.2 5.2 7 4.6 8 4.6s1.8.7 1.8 1.6c0 1.3-1.8 1.4-1.8 2.8M8 11v.5",
  panel: "M2 3h12v10H2zM6 3v10",
  open: "M9 2.5h4.5V7M13.5 2.5 7.5 8.5M11.5 9v4.5h-9v-9H7",
  trace: "M2 4h4l4 8h4M2 12h4l1.3-2.6M8.7 6.6 10 4h4",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  play: "M5 3l8 5-8 5z",
  retry: "M13 3.5V7H9.5M12.7 7A5 5 0 1 0 13 9.5",
  edit: "M10.5 3 13 5.5 5.5 13H3v-2.5zM9 4.5 11.5 7",
  save: "M8 2.5v7M5 6.5l3 3 3-3M3 11.5v2h10v-2",
  sliders: "M2.5 4.5h6M11.5 4.5h2M10 3v3M2.5 11.5h2M7.5 11.5h6M6 10v3",
  more: "M2.8 8h.8M7.6 8h.8M12.4 8h.8",
  pin: "M8 10.5V14M5 2.5h6M6 2.5v3.5L4 10.5h8L10 6V2.5",
  gear: "M8 10.2a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4zM8 12.4a4.4 4.4 0 1 0 0-8.8 4.4 4.4 0 0 0 0 8.8zM8 1.4v2.2M8 12.4v2.2M1.4 8h2.2M12.4 8h2.2M3.3 3.3l1.6 1.6M11.1 11.1l1.6 1.6M12.7 3.3l-1.6 1.6M4.9 11.1l-1.6 1.6",
  history: "M8 4.5V8l2.5 1.5M2.5 8A5.5 5.5 0 1 0 4.3 4M2.5 2.5V5H5",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 15 }: { name: IconName; size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 16 16" fill="none" stroke="currentColor" strokeWidth="1.3" strokeLinecap="round" strokeLinejoin="round" aria-hidden="true" className="shrink-0">
      <path d={PATHS[name]} />
    </svg>
  );
}
