/** UI strings of previews of files. */
import { messages, plural } from '../text/messages.ts'

export const previewText = messages('preview', {
  preview: 'Preview',
  content: (name: string) => `Content of ${name}`,
  shown: 'Shown as',
  rendered: 'Preview',
  raw: 'Text',
  cut: (shown: string, total: string) =>
    `The first ${shown} of ${total} are shown. Download the file to see the rest.`,
  linesCut: (count: number) => `The first ${plural(count, 'line', 'lines')} are shown.`,
  tooLarge: (size: string) => `The file has ${size}, which is too much for a preview.`,
  none: 'There is no preview for this type of file.',
  noneHint: 'Download it to open it with another program.',
  noPdf: 'This browser shows no PDF files. Download the file to open it.',
  empty: 'The file is empty.',
  longMarkdown: 'The text is too long to be shown as Markdown, so it is shown as it is.',
  notJson: 'The text is not valid JSON, so it is shown as it is.',
  recordsCut: (count: number) => `The first ${plural(count, 'record', 'records')} are shown.`,
  frameHint: 'Shown without scripts and without content from other addresses.',
})
