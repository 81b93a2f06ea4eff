/** Making elements: attributes by name, texts as texts. Nothing on the page makes markup of a string. */
import { exactTime, shortTime } from './time.ts'

type Attribute = string | boolean | undefined | ((event: Event) => void)
type Child = Node | string | undefined | false

/** An element. An attribute that is true is set empty, one that is false or undefined is not set; functions listen to the event that `on…` names. */
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

/** A time in the browser's locale and zone. @param time RFC 3339. */
export const timeElement = (time: string): HTMLTimeElement =>
  el('time', { datetime: time, title: exactTime(time) }, shortTime(time, Date.now()))

/** Bring a text up to date; what only grew is added to, so that a selection in it stays. */
export function retext(node: Text, text: string): void {
  if (node.data === text) return
  if (text.startsWith(node.data)) node.appendData(text.slice(node.data.length))
  else node.data = text
}

/** A value as people read it: text as it is, anything else as JSON in lines. */
export const readable = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value, null, 2)
