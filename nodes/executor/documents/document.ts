/**
 * Converts text documents (DOCX) with `mammoth`. The library receives an archive with only the
 * parts that it needs, decompressed within limits and checked to be well-formed.
 */
import { zipSync } from 'fflate'
import mammoth from 'mammoth'
import { readParts } from './archive.ts'
import { DocumentFault } from './fault.ts'
import { markdownOfHtml } from './html.ts'
import { cut, MAX_MARKDOWN } from './markdown.ts'
import { readXml } from './xml.ts'

const wanted = /^(\[Content_Types\]\.xml|_rels\/\.rels|word\/(_rels\/)?[^/]+\.(xml|rels))$/
/** Number of elements, and of nodes, after which the rest of a document is left out. */
const ENOUGH = { elements: 200_000, nodes: 700_000 } as const
/**
 * Limits of all parts together: their nodes, of which an element counts as three, and the characters
 * of their texts and attributes. `mammoth` needs up to 0.4 KiB for a node. A thread that exhausts
 * its heap may end the whole process.
 */
const MAX = { nodes: 900_000, characters: 4_194_304 } as const
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
  const size: Size = { nodes: 0, characters: 0 }
  for (const [name, part] of readParts(bytes, wanted)) {
    const beginning = beginningOf(part, name, size)
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
  return cut(markdownOfHtml(value), whole)
}

/** The size of the parts that were read so far. */
interface Size {
  nodes: number
  characters: number
}
/**
 * Checks that a part is well-formed. If the part exceeds the limits, returns its beginning, which
 * is enough for the Markdown, so that `mammoth` need not convert the rest (0.2 ms per paragraph).
 * Returns undefined if the whole part is needed.
 * @throws {DocumentFault} when the part is not well-formed, or the parts exceed the limits.
 */
function beginningOf(bytes: Uint8Array, part: string, size: Size): Uint8Array | undefined {
  const path: string[] = []
  const before = size.nodes
  let [length, elements, end] = [0, 0, 0]
  const count = (nodes: number, characters: number): void => {
    size.nodes += nodes
    size.characters += characters
    if (size.nodes > MAX.nodes || size.characters > MAX.characters)
      throw new DocumentFault(
        'The file is too complex: a table, a paragraph or the styles are too large. Split the file.',
      )
  }
  readXml(bytes, part, {
    open(tag, attributes) {
      path.push(tag)
      elements++
      const values = Object.values(attributes)
      count(
        3 + values.length,
        values.reduce((sum, value = '') => sum + value.length, 0),
      )
    },
    text(more) {
      length += more.length
      count(1, more.length)
    },
    ignored: () => count(1, 0),
    close(_, position) {
      path.pop()
      const enough =
        length > MAX_MARKDOWN || elements > ENOUGH.elements || size.nodes - before > ENOUGH.nodes
      if (enough && end === 0 && path.join() === 'document,body') end = position
    },
    done: () => end > 0,
  })
  if (end === 0) return undefined
  const text = new TextDecoder().decode(bytes)
  const [, root = 'document'] = /<([\w.-]+:document|document)[\s>]/.exec(text) ?? []
  return Buffer.from(`${text.slice(0, end)}</${root.replace('document', 'body')}></${root}>`)
}
