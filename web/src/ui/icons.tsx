const PATHS = {
  costs: "M2.5 13.5v-4M6.2 13.5v-8M9.8 13.5v-6M13.5 13.5v-11",
  topics: "M2.5 2.5h5v7h-5zM9.5 2.5h4v4h-4zM9.5 8.5h4v5h-4zM2.5 11.5h5v2h-5z",
  map: "M2 3.5h3v3H2zM2 9.5h3v3H2zM11 6.5h3v3h-3zM5 5c3 0 3 2.500 6 2.500M5 11c3 0 3-2.500 6-2.500",
  rows: "M2.500 3.500h11M2.500 6.500h11M2.500 9.500h11M2.500 12.500h11",
  unowned:
    "M8 7.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM3 13.500c.5-2.500 2.500-4 5-4s4.500 1.500 5 4M2 2l12 12",
  days: "M2.500 3.500h11v10h-11zM2.500 6.500h11M5.500 2v3M10.500 2v3M5.500 10l1.700 1.500 3-3",
  tags: "M2.500 2.500h5.500l5.500 5.500-5.500 5.500-5.500-5.500zM5.500 5.500h.01",
  views: "M4 2.500h8v11l-4-3-4 3z",
  search: "M7 11.500a4.500 4.500 0 1 0 0-9 4.500 4.500 0 0 0 0 9zM10.500 10.500l3 3",
  calendar: "M2.500 3.500h11v10h-11zM2.500 6.500h11M5.500 2v3M10.500 2v3",
  chevron: "M4 6l4 4 4-4",
  next: "M6 4l4 4-4 4",
  close: "M4 4l8 8M12 4l-8 8",
  plus: "M8 3v10M3 8h10",
  minus: "M3.500 8h9",
  link: "M6.500 9.500l3-3M7.500 4.500l1-1a2.800 2.800 0 0 1 4 4l-1 1M8.500 11.500l-1 1a2.800 2.800 0 0 1-4-4l1-1",
  download: "M8 2.500v8M4.500 7.500L8 11l3.500-3.500M3 13.500h10",
  moon: "M13 9.500A5.500 5.500 0 0 1 6.500 3a5.500 5.500 0 1 0 6.500 6.500z",
  sun: "M8 10.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM8 1.500v1.500M8 13v1.500M1.500 8h1.500M13 8h1.500M3.400 3.400l1 1M11.600 11.600l1 1M3.400 12.600l1-1M11.600 4.400l1-1",
  system: "M2 3h12v8H2zM6 13.500h4",
  table: "M2.500 3.500h11v9h-11zM2.500 6.500h11M2.500 9.500h11M7 3.500v9",
  check: "M3 8.500l3.500 3.500L13 5",
  warning: "M8 2.500l6 11H2zM8 7v3M8 12h.01",
  save: "M3 2.500h8l2 2v9H3zM5.500 2.500v3.500h4v-3.500M5.500 13.500v-4h5v4",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, className = "" }: { name: IconName; className?: string }) {
  return (
    <svg className={`icon ${className}`} viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
