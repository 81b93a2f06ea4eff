/**
 * Converts text documents (DOCX) with `mammoth`. The library receives an archive with only the
 * parts that it needs, decompressed within limits and checked to be well-formed.
 */
import { zipSync } from 'fflate'
import mammoth from 'mammoth'
import { readParts } from './archive.ts'
import { DocumentFault } from './fault.ts'
import { markdownOfHtml } from './html.ts'
import { cutMarkdown, MAX_MARKDOWN } from './markdown.ts'
import { readXml } from './xml.ts'

const wanted = /^(\[Content_Types\]\.xml|_rels\/\.rels|word\/(_rels\/)?[^/]+\.(xml|rels))$/
/** Number of elements after which the rest of a document is left out. */
const MAX_ELEMENTS = 200_000
/** Styles in addition to the headings and lists that `mammoth` maps by default. */
const styleMap = [
  "p[style-name='Title'] => h1:fresh",
  'p.Title => h1:fresh',
  "p[style-name='Subtitle'] => h2:fresh",
  'p.Subtitle => h2:fresh',
]

/**
 * Returns the Markdown of a text document. Pictures appear as their alternative text.
 * @throws {DocumentFault} when the document cannot be read.
 */
export async function documentMarkdown(bytes: Uint8Array): Promise<string> {
  const parts: Record<string, Uint8Array> = {}
  let whole = true
  for (const [name, part] of readParts(bytes, wanted)) {
    const beginning = beginningOf(part, name)
    if (beginning) whole = false
    parts[name] = beginning ?? part
  }
  const archive = zipSync(parts, { level: 0 })
  const { value } = await mammoth
    .convertToHtml(
      { buffer: Buffer.from(archive.buffer, archive.byteOffset, archive.byteLength) },
      {
        styleMap,
        includeEmbeddedStyleMap: false,
        externalFileAccess: false,
        convertImage: mammoth.images.imgElement(async () => ({ src: '' })),
      },
    )
    .catch((error: unknown) => {
      const why = error instanceof Error ? error.message : String(error)
      throw new DocumentFault(`The document cannot be read: ${why.slice(0, 500)}`)
    })
  return cutMarkdown(markdownOfHtml(value), whole)
}

/**
 * Checks that a part is well-formed. If the part exceeds the limits, returns its beginning, which
 * is enough for the Markdown, so that `mammoth` need not convert the rest (0.2 ms per paragraph).
 * Returns undefined if the whole part is needed.
 */
function beginningOf(bytes: Uint8Array, part: string): Uint8Array | undefined {
  const path: string[] = []
  let [length, elements, end] = [0, 0, 0]
  readXml(bytes, part, {
    open(tag) {
      path.push(tag)
      elements++
    },
    text(more) {
      length += more.length
    },
    close(_, position) {
      path.pop()
      const enough = length > MAX_MARKDOWN || elements > MAX_ELEMENTS
      if (enough && end === 0 && path.join() === 'document,body') end = position
    },
    done: () => end > 0,
  })
  if (end === 0) return undefined
  const text = new TextDecoder().decode(bytes)
  const [, root = 'document'] = /<([\w.-]+:document|document)[\s>]/.exec(text) ?? []
  return Buffer.from(`${text.slice(0, end)}</${root.replace('document', 'body')}></${root}>`)
}
