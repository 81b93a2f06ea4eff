/** UI strings of the editor. */
import { messages, plural } from '../text/messages.ts'

export const editorText = messages('editor', {
  leave: 'Escape, then Tab leaves the editor. Ctrl-Space suggests, Ctrl-F searches.',
  faults: (count: number) => plural(count, 'fault', 'faults'),
  line: (line: number) => `Line ${line}`,
  moreFaults: (count: number) => `and ${plural(count, 'further fault', 'further faults')}`,
  find: 'Find',
  previous: 'Previous match',
  next: 'Next match',
  close: 'Close the search',
  matches: (at: number, count: number) => (count === 0 ? 'No match' : `${at} of ${count}`),
  language: 'Format',
  json: 'JSON',
  yaml: 'YAML',
  notConverted: 'The text has a fault, so it cannot be converted.',
  before: 'Before',
  after: 'After',
  same: 'There is no difference.',
  unchanged: (count: number) => plural(count, 'unchanged line', 'unchanged lines'),
})
