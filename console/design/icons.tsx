/** The icons, drawn as lines in a 24 × 24 view box. */

const shapes = {
  home: 'M4 11l8-7 8 7v9h-5v-6H9v6H4z',
  runs: 'M5 5h6M5 12h14M5 19h9M15 5h4',
  start: 'M7 4l13 8-13 8z',
  inbox: 'M4 13l3-8h10l3 8v6H4zM4 13h5a3 3 0 006 0h5',
  sessions: 'M4 5h16v11H9l-5 4z',
  agents:
    'M8 8h8a3 3 0 013 3v6a3 3 0 01-3 3H8a3 3 0 01-3-3v-6a3 3 0 013-3zM12 8V4M9.5 13v1M14.5 13v1',
  channels: 'M9 4L7 20M17 4l-2 16M4 9h16M4 15h16',
  workflows: 'M4 4h6v5H4zM14 15h6v5h-6zM7 9v4a4 4 0 004 4h3',
  loops: 'M4 12a8 8 0 0114-5l2 2M20 4v5h-5M20 12a8 8 0 01-14 5l-2-2M4 20v-5h5',
  tables: 'M4 5h16v14H4zM4 10h16M10 5v14',
  artifacts: 'M6 3h8l4 4v14H6zM14 3v4h4',
  environments: 'M4 5h16v11H4zM9 20h6M12 16v4M7 9l2 2-2 2M12 13h3',
  workers:
    'M12 8a4 4 0 100 8 4 4 0 000-8zM12 2v3M12 19v3M4.2 7.5l2.6 1.5M17.2 15l2.6 1.5M4.2 16.5L6.8 15M17.2 9l2.6-1.5',
  webhooks: 'M10 14l4-4M8 11l-2 2a4 4 0 006 6l2-2M16 13l2-2a4 4 0 00-6-6l-2 2',
  blueprints: 'M4 4h16v16H4zM4 9h16M9 9v11M13 13h3M13 16h3',
  projects: 'M3 6h6l2 2h10v11H3z',
  events: 'M13 3L5 13h6l-1 8 8-10h-6z',
  toolkits: 'M4 8h16v11H4zM9 8V5h6v3M4 13h16',
  resolver: 'M6 4v17M6 5h9l4 3.5-4 3.5H6',
  people:
    'M9 11a3.5 3.5 0 100-7 3.5 3.5 0 000 7zM3 20a6 6 0 0112 0M16 4.5a3.5 3.5 0 010 6.5M18 14a6 6 0 013 6',
  keys: 'M8 15a4 4 0 110-8 4 4 0 010 8zM12 11h9v4M17 11v3',
  secrets: 'M6 11h12v9H6zM9 11V8a3 3 0 016 0v3',
  audit: 'M5 3h14v18l-3-2-2 2-2-2-2 2-2-2-3 2zM9 8h6M9 12h6',
  settings: 'M4 7h10M18 7h2M4 17h2M10 17h10M14 5v4h4V5zM6 15v4h4v-4z',
  cluster:
    'M12 4v5M12 15v5M12 9a3 3 0 100 6 3 3 0 000-6zM5 6l4.5 4M19 6l-4.5 4M5 18l4.5-4M19 18l-4.5-4',
  search: 'M11 4a7 7 0 100 14 7 7 0 000-14zM16 16l4 4',
  plus: 'M12 5v14M5 12h14',
  minus: 'M5 12h14',
  fit: 'M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5',
  close: 'M6 6l12 12M18 6L6 18',
  check: 'M5 13l4 4L19 7',
  more: 'M5 11a1 1 0 100 2 1 1 0 000-2zM12 11a1 1 0 100 2 1 1 0 000-2zM19 11a1 1 0 100 2 1 1 0 000-2z',
  menu: 'M4 7h16M4 12h16M4 17h16',
  copy: 'M9 9h11v11H9zM15 9V4H4v11h5',
  reload: 'M20 11a8 8 0 10-2 6M20 4v7h-7',
  down: 'M6 9l6 6 6-6',
  right: 'M9 6l6 6-6 6',
  warning: 'M12 4l9 16H3zM12 10v5M12 17.5v.01',
  info: 'M12 3a9 9 0 100 18 9 9 0 000-18zM12 11v6M12 7.5v.01',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
  edit: 'M4 20l1-5L16 4l4 4L9 19z',
  external: 'M14 4h6v6M20 4l-9 9M18 14v6H4V6h6',
  download: 'M12 4v11M7 11l5 5 5-5M5 20h14',
  upload: 'M12 16V5M7 9l5-5 5 5M5 20h14',
  filter: 'M4 5h16l-6 8v6l-4-2v-4z',
  star: 'M12 4l2.5 5.2 5.5.8-4 4 1 5.6-5-2.7-5 2.7 1-5.6-4-4 5.5-.8z',
  stop: 'M7 7h10v10H7z',
  pin: 'M9 4h6l-1 6 3 3v2H7v-2l3-3zM12 15v5',
  send: 'M4 12l16-8-6 16-3-7z',
  theme: 'M12 3a9 9 0 100 18zM12 3a9 9 0 010 18',
  user: 'M12 12a4 4 0 100-8 4 4 0 000 8zM4 21a8 8 0 0116 0',
} as const

/** Names of the icons. */
export type IconName = keyof typeof shapes

/** Shows an icon. It is decorative, so a control that shows only an icon needs a label. */
export const Icon = ({ name }: { readonly name: IconName }) => (
  <svg class="icon-shape" viewBox="0 0 24 24" aria-hidden="true">
    <path d={shapes[name]} />
  </svg>
)
