/**
 * Inspects a page of the console from inside, for tests with hostile content: whether a text was
 * executed, became a URL, affects the direction of words around it, or makes the page too wide. The
 * code is injected into the page as part of the global `inspection`.
 * `test/scenarios/console/hostile/texts.ts` describes the marks of the texts.
 */

const CONTROLS = /[\u202a-\u202e\u2066-\u2069\u061c\u200e\u200f]/g
/** Bidirectional controls that stay in effect until they are terminated. */
const OPEN = /[\u202a-\u202e\u2066\u2067]/
const LETTERS = /\p{L}{2,}/u
const ADDRESSES = new Set(
  'href src action formaction poster data srcset xlink:href ping cite background codebase'.split(
    ' ',
  ),
)
const SPOKEN = ['title', 'aria-label', 'aria-description', 'alt', 'placeholder', 'label']
const MARK = /q(\d+)q/g

let executed = 0
/** Counts an execution of a hostile text. Each hostile text contains a call to this function. */
function hacked(): void {
  executed++
}
Object.defineProperty(globalThis, 'hacked', { value: hacked })
Object.defineProperty(HTMLElement.prototype, 'hacked', { value: hacked })

/** The result of an inspection. */
export interface Findings {
  readonly faults: readonly string[]
  /** Marks of the fields that the page shows. */
  readonly seen: readonly number[]
}

const cut = (text: string): string => text.replace(CONTROLS, '·').slice(0, 140)
const nameOf = (element: Element): string => {
  const path: string[] = []
  for (let at: Element | null = element; at && path.length < 4; at = at.parentElement)
    path.unshift(`${at.localName}${at.getAttribute('class') ? `.${at.getAttribute('class')}` : ''}`)
  return cut(path.join(' > '))
}

/** Returns the console's own words that surround the texts of users in `text`. */
function wordsAround(text: string): string {
  const first = text.search(/q\d+q/)
  if (first < 0) return ''
  const before = text.slice(0, first)
  const last = [...text.matchAll(/z\d+z/g)].at(-1)
  // The extension of a file name and the filler of a long text belong to the user's text.
  const after = last ? text.slice(last.index + last[0].length).replace(/^(\.\w+|W+)+/, '') : ''
  // `before` is not the console's own text if it is the beginning of a JSON, HTML or skill text, or
  // of the name of a binding, which the service composes.
  return /["{[<]|^---|^telegram /.test(before) ? after.replace(/^"[\s\S]*/, '') : before + after
}

function checkAddress(element: Element, name: string, value: string, faults: string[]): void {
  const at = `${nameOf(element)} ${name}=${cut(value)}`
  if (!/^[\x21-\x7e]*$/.test(value) || /[<>"]/.test(value)) {
    faults.push(`a text in an address: ${at}`)
    return
  }
  let address: URL
  try {
    address = new URL(value, location.href)
  } catch {
    faults.push(`not an address: ${at}`)
    return
  }
  const { protocol, origin } = address
  if (protocol === 'blob:' || protocol === 'mailto:' || value === 'data:,') return
  if (!/^https?:$/.test(protocol)) faults.push(`an address with a protocol of its own: ${at}`)
  else if (origin === location.origin) return
  else if (element.localName !== 'a' || !/noopener/.test(element.getAttribute('rel') ?? ''))
    faults.push(`another origin: ${at}`)
}

/** Whether an element isolates the direction of its content. */
function isIsolating(element: Element): boolean {
  const { display, unicodeBidi } = getComputedStyle(element)
  return (
    (unicodeBidi !== 'normal' && unicodeBidi !== 'embed') || !/^(inline|contents)$/.test(display)
  )
}
/**
 * Returns a function that returns the nearest ancestor that isolates the direction of its content.
 * The function remembers its results, so it must not be used after a change of the document.
 */
function isolatingAncestors(): (node: Node) => Element {
  const known = new Map<Element, Element>()
  const isolating = (node: Node): Element => {
    const { parentElement } = node
    if (!parentElement) return document.documentElement
    let found = known.get(parentElement)
    if (!found) {
      found = isIsolating(parentElement) ? parentElement : isolating(parentElement)
      known.set(parentElement, found)
    }
    return found
  }
  return isolating
}
/** Returns the text of an element without `node` and without isolated parts. */
function besides(element: Element, node: Node, isolating: (node: Node) => Element): string {
  const parts: string[] = []
  const walk = (at: Node): void => {
    if (at === node) return
    if (at instanceof Text) {
      if (isolating(at) === element) parts.push(at.data)
    } else for (const child of at.childNodes) walk(child)
  }
  walk(element)
  return parts.join(' ')
}

function checkDirections(faults: string[]): void {
  const isolating = isolatingAncestors()
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const { data, parentElement } = node as Text
    if (!parentElement || !OPEN.test(data)) continue
    // Editors and terminals show a single text, and handle bidirectional controls themselves.
    if (parentElement.closest('.cm-editor, .xterm, textarea, script, style')) continue
    if (parentElement.checkVisibility?.() === false) continue
    const around = wordsAround(data)
    const element = isolating(node)
    const others = besides(element, node, isolating)
    const isSame = /q\d+q|z\d+z/.test(others) || !LETTERS.test(others)
    if (LETTERS.test(around))
      faults.push(`words beside a text: ${nameOf(parentElement)}: ${cut(around)}`)
    else if (!isSame)
      faults.push(`not isolated: ${nameOf(parentElement)} in ${nameOf(element)}: ${cut(others)}`)
  }
  if (OPEN.test(document.title) && LETTERS.test(wordsAround(document.title)))
    faults.push(`words beside a text in the title: ${cut(document.title)}`)
}

const isTooWide = (element: Element): boolean => element.scrollWidth > element.clientWidth + 1

function checkLayout(faults: string[]): void {
  const width = document.documentElement.scrollWidth
  if (width > innerWidth) {
    const wide = [...document.querySelectorAll('main *')]
      .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
      .filter((one) => !one.parentElement?.closest('.virtual, .table-frame, .tabs, pre'))
      .at(0)
    faults.push(`${width} > ${innerWidth} pixels: ${wide ? nameOf(wide) : ''}`)
  }
  const top = document.querySelector('.top')
  if (top && top.getBoundingClientRect().height > 100) faults.push('the frame is too high')
  for (const dialog of document.querySelectorAll('dialog[open] > .inside'))
    if (isTooWide(dialog)) faults.push(`a dialog is too wide: ${cut(dialog.textContent)}`)
  for (const menu of document.querySelectorAll('.menu-list:popover-open')) {
    const { left, right } = menu.getBoundingClientRect()
    if (left < 0 || right > innerWidth + 1 || isTooWide(menu))
      faults.push(`a menu is too wide: ${cut(menu.textContent)}`)
  }
  for (const toast of document.querySelectorAll('.toast')) {
    const { left, right } = toast.getBoundingClientRect()
    if (left < 0 || right > innerWidth + 1) faults.push('a toast is too wide')
  }
}

/** Inspects the current state of the document. */
export function look(): Findings {
  const faults: string[] = []
  const seen = new Set<number>()
  const see = (text: string): void => {
    for (const [, mark] of text.matchAll(MARK)) seen.add(Number(mark))
  }
  if (executed > 0) faults.push('a text was executed')
  see(document.documentElement.textContent)
  see(document.title)
  for (const element of document.querySelectorAll('*')) {
    for (const { name, value } of element.attributes) {
      if (/^on/i.test(name) || name === 'srcdoc')
        faults.push(`${name} at ${nameOf(element)}: ${cut(value)}`)
      if (ADDRESSES.has(name)) checkAddress(element, name, value, faults)
      else if (value.includes('q')) see(value)
      if (SPOKEN.includes(name) && OPEN.test(value) && LETTERS.test(wordsAround(value)))
        faults.push(`words beside a text in ${name}: ${nameOf(element)}: ${cut(value)}`)
    }
    if (element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement)
      see(element.value)
    if (/^(script|iframe|object|embed|base|meta|link)$/.test(element.localName)) {
      const html = element.matches('.preview-frame') ? '' : element.outerHTML
      if (/q\d+q|hacked|evil/.test(html)) faults.push(`an element of a text: ${cut(html)}`)
    }
  }
  checkDirections(faults)
  checkLayout(faults)
  if (document.querySelector('main .notice.bad')?.textContent.includes('This page has a fault'))
    faults.push('the page has failed')
  return { faults: [...new Set(faults)], seen: [...seen] }
}
