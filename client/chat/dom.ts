/** Creates DOM elements from attributes and text. The page never parses strings as markup. */
import { exactTime, shortTime } from './time.ts'

type Attribute = string | boolean | undefined | ((event: Event) => void)
type Child = Node | string | undefined | false

/**
 * Creates an element. An attribute that is true is set to the empty string; one that is false or
 * undefined is omitted. A function is added as an event listener; its attribute name is `on`
 * followed by the event type.
 */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, Attribute>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') made.addEventListener(name.slice(2), value)
    else if (value !== undefined && value !== false)
      made.setAttribute(name, value === true ? '' : value)
  }
  made.append(...children.filter((child) => child !== undefined && child !== false))
  return made
}

/**
 * Creates an element that shows a time in the browser's locale and zone.
 * @param time in RFC 3339 format.
 */
export const timeElement = (time: string): HTMLTimeElement =>
  el('time', { datetime: time, title: exactTime(time) }, shortTime(time, Date.now()))

/** Updates a text node. Added text is appended, so that a selection in the node is preserved. */
export function updateText(node: Text, text: string): void {
  if (node.data === text) return
  if (text.startsWith(node.data)) node.appendData(text.slice(node.data.length))
  else node.data = text
}

/** Formats a value for display: text unchanged, anything else as indented JSON. */
export const displayText = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value, null, 2)
