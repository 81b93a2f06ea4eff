/**
 * Converts presentations (PPTX). Each slide becomes a section, in order, with its title, texts,
 * tables and speaker notes.
 */
import { type Parts, readParts } from './archive.ts'
import { DocumentFault } from './fault.ts'
import { allRows, MAX_MARKDOWN, tableOf } from './markdown.ts'
import { numberedParts, relationshipsOf } from './relationships.ts'
import { readXml } from './xml.ts'

const wanted =
  /^ppt\/((_rels\/)?presentation\.xml(\.rels)?|(slides|notesSlides)\/(_rels\/)?[^/]+\.(xml|rels))$/
const MAIN = 'ppt/presentation.xml'

/**
 * Returns the Markdown of a presentation.
 * @throws {DocumentFault} when the presentation has no slides, or cannot be read.
 */
export function slidesMarkdown(bytes: Uint8Array): string {
  const parts = readParts(bytes, wanted)
  const slides: string[] = []
  let size = 0
  for (const [index, part] of slidesOf(parts).entries()) {
    if (size > MAX_MARKDOWN) break
    const { title, blocks } = slideOf(parts, part)
    const heading = `## Slide ${index + 1}${title === '' ? '' : `: ${title}`}`
    const notes = relationshipsOf(parts, part).find(({ type }) => type === 'notesSlide')
    const said = notes ? slideOf(parts, notes.part, 'body').blocks : []
    const slide = [heading, ...blocks, ...(said.length > 0 ? ['Notes:', ...said] : [])].join('\n\n')
    slides.push(slide)
    size += slide.length
  }
  if (slides.length === 0) throw new DocumentFault('The presentation has no slides.')
  return slides.join('\n\n')
}

/** Returns the names of the parts that contain slides, in the order of the presentation. */
function slidesOf(parts: Parts): readonly string[] {
  const related = new Map(relationshipsOf(parts, MAIN).map(({ id, part }) => [id, part]))
  const ordered = new Set<string>()
  const main = parts.get(MAIN)
  if (main)
    readXml(main, MAIN, {
      open(tag, { id = '' }) {
        const part = tag === 'sldId' ? related.get(id) : undefined
        if (part !== undefined && parts.has(part)) ordered.add(part)
      },
    })
  return ordered.size > 0 ? [...ordered] : numberedParts(parts, /^ppt\/slides\/slide(\d+)\.xml$/)
}

/**
 * Returns the title of a slide, and its other texts and tables.
 * @param only a type of placeholder. If it is given, only texts in placeholders of this type are
 *   included.
 */
function slideOf(parts: Parts, part: string, only?: string) {
  const blocks: string[] = []
  const title: string[] = []
  let [line, taking, depth, placeholder] = ['', false, 0, '']
  let rows: string[][] = []
  const bytes = parts.get(part)
  if (bytes)
    readXml(bytes, part, {
      open(tag, { type = 'body' }) {
        if (tag === 't') taking = true
        else if (tag === 'br') line += '\n'
        else if (tag === 'sp') placeholder = ''
        else if (tag === 'ph') placeholder = type
        else if (tag === 'tbl' && ++depth === 1) rows = []
        else if (tag === 'tr' && depth === 1) rows.push([])
      },
      text(more) {
        if (taking) line += more
      },
      close(tag) {
        if (tag === 't') taking = false
        else if (tag === 'p' && depth > 0) line += '\n'
        else if (tag === 'p') {
          const text = line.trim()
          line = ''
          if (text === '' || (only !== undefined && placeholder !== only)) return
          if (/^(ctrT|t)itle$/.test(placeholder)) title.push(text.replaceAll('\n', ' '))
          else blocks.push(text)
        } else if (tag === 'tc' && depth === 1) {
          rows.at(-1)?.push(line)
          line = ''
        } else if (tag === 'tbl' && --depth === 0) {
          const table = tableOf(allRows(rows))
          if (table !== '') blocks.push(table)
        }
      },
    })
  return { title: title.join(' '), blocks }
}
