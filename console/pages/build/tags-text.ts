/** UI strings of the fields for tags. */
import { messages } from '../../text/messages.ts'

export const tagsText = messages('tags', {
  tags: 'Tags',
  key: 'Key',
  value: 'Value',
  add: 'Add a tag',
  repeated: 'Another tag has the same key.',
  keyMissing: 'A tag needs a key.',
  remove: (key: string) => `Remove the tag ${key}`,
})
