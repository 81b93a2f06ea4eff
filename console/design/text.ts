/** Texts of the components that every page uses. */
import { messages, plural } from '../text/messages.ts'

export const designText = messages('design', {
  close: 'Close',
  cancel: 'Cancel',
  copy: 'Copy',
  copied: 'Copied.',
  copyAs: 'Copy as',
  copyId: 'Copy id',
  curl: 'curl',
  cli: 'Command line',
  typescript: 'TypeScript',
  retry: 'Try again',
  loading: 'Loading…',
  more: 'Load more',
  moreActions: 'More actions',
  about: (name: string, content: string) => `${name}: ${content}`,
  detailed: (name: string, detail: string) => `${name} (${detail})`,
  request: (id: string) => `Request ${id}`,
  failed: 'This could not be loaded.',
  pageFailed: 'This page has a fault.',
  pageFailedHint: 'The fault is in the console, not in your work. Reload the page.',
  reload: 'Reload',
  items: (count: number) => plural(count, 'item', 'items'),
  members: (count: number) => plural(count, 'member', 'members'),
  showAll: 'Show all',
  deepValue: 'Show the rest',
})
