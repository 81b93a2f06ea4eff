/** Media types by the extension of a file name, for the types that the service shows as previews. */

const office = 'application/vnd.openxmlformats-officedocument'
const types: Readonly<Record<string, string>> = {
  csv: 'text/csv',
  docx: `${office}.wordprocessingml.document`,
  gif: 'image/gif',
  htm: 'text/html',
  html: 'text/html',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  json: 'application/json',
  log: 'text/plain',
  md: 'text/markdown',
  pdf: 'application/pdf',
  png: 'image/png',
  pptx: `${office}.presentationml.presentation`,
  svg: 'image/svg+xml',
  tar: 'application/x-tar',
  txt: 'text/plain',
  webp: 'image/webp',
  xlsx: `${office}.spreadsheetml.sheet`,
  xml: 'application/xml',
  zip: 'application/zip',
}

/** The media type that the extension of a name implies, or `application/octet-stream`. */
export const mimeOf = (name: string): string => {
  const extension = /\.([a-z0-9]+)$/i.exec(name)?.[1]?.toLowerCase() ?? ''
  return Object.hasOwn(types, extension) ? (types[extension] as string) : 'application/octet-stream'
}
