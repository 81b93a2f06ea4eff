/**
 * Uses the controls of a console page, for tests with hostile content: tabs, folded parts, menus,
 * and the dialogs that buttons and menus open. No dialog is confirmed. The page is inspected after
 * each step.
 */
import { type Findings, look } from './inspect.ts'

const frame = (): Promise<unknown> => new Promise(requestAnimationFrame)
/** Waits until the page shows its data, for about 60 frames at most. */
export async function waitForData(): Promise<void> {
  await frame()
  for (let n = 0; n < 60 && document.querySelector('.skeleton, button[aria-busy=true]'); n++)
    await frame()
  await frame()
}

/** Buttons that leave or reload the page, or change the theme. */
const AVOIDED = /sign out|theme|reload|api reference/i
const labelOf = (element: Element): string =>
  (element.getAttribute('aria-label') || element.getAttribute('title') || element.textContent)
    .replaceAll(/[\u2066-\u2069]/g, '')
    .trim()
/** Labels of buttons that are the same on every page. Each is used once. */
const everywhere = new Set(['Copy as', 'Copy', 'Copy the id'])
const usedOnce = new Set<string>()
/**
 * Returns the label of an element without names of records, so that corresponding controls in all
 * rows of a list have equal labels.
 */
const kindOf = (element: Element): string => labelOf(element).replace(/\S*q\d+q[\s\S]*|: .*/, '…')
const isUsable = (element: HTMLElement): boolean =>
  element.checkVisibility() && !element.matches(':disabled, [aria-disabled=true]')

function closeAll(): void {
  for (const dialog of document.querySelectorAll('dialog[open]'))
    dialog.dispatchEvent(new Event('cancel', { cancelable: true }))
  for (const menu of document.querySelectorAll<HTMLElement>('.menu-list:popover-open'))
    menu.hidePopover()
}

/** The findings of a walk, and its number of steps. */
export interface Walked extends Findings {
  readonly steps: number
}

/**
 * Walks through the current page.
 * @param most maximum number of buttons that are used in each tab. With 0, only tabs and folded
 *   parts are used.
 */
export async function walk(most: number): Promise<Walked> {
  const faults = new Set<string>()
  const seen = new Set<number>()
  let steps = 0
  const note = (where: string): void => {
    const found = look()
    for (const fault of found.faults) faults.add(`${where}: ${fault}`)
    for (const mark of found.seen) seen.add(mark)
    steps++
  }
  const home = location.pathname
  const used = new Set<string>()
  const buttons = (within: string): HTMLElement[] =>
    [...document.querySelectorAll<HTMLElement>(within)].filter(
      (one) =>
        isUsable(one) &&
        !AVOIDED.test(labelOf(one)) &&
        !used.has(kindOf(one)) &&
        !usedOnce.has(kindOf(one)),
    )
  const back = async (): Promise<void> => {
    closeAll()
    await frame()
    if (location.pathname !== home) {
      history.back()
      for (let n = 0; n < 120 && location.pathname !== home; n++) await frame()
      await waitForData()
    }
  }
  const use = async (button: HTMLElement, where: string): Promise<void> => {
    used.add(kindOf(button))
    if (everywhere.has(kindOf(button))) usedOnce.add(kindOf(button))
    button.click()
    await waitForData()
    const menu = document.querySelector('.menu-list:popover-open')
    note(`${where} > ${kindOf(button)}`)
    const items = menu?.querySelectorAll('button').length ?? 0
    for (let n = 0; n < Math.min(items, 8); n++) {
      await back()
      button.click()
      await frame()
      const item = document.querySelectorAll<HTMLElement>('.menu-list:popover-open button:enabled')[
        n
      ]
      if (!item || AVOIDED.test(labelOf(item))) continue
      const name = kindOf(item)
      item.click()
      await waitForData()
      note(`${where} > ${kindOf(button)} > ${name}`)
    }
    await back()
  }
  const part = async (where: string): Promise<void> => {
    await waitForData()
    for (let round = 0; round < 3; round++) {
      const folded = document.querySelectorAll<HTMLElement>('main details:not([open]) > summary')
      if (folded.length === 0) break
      for (const summary of [...folded].slice(0, 40)) summary.click()
      await waitForData()
    }
    note(where)
    for (let n = 0; n < most; n++) {
      const [next] = buttons('main button:not([role=tab])')
      if (!next) break
      await use(next, where)
    }
  }
  const tabs = () => [...document.querySelectorAll<HTMLElement>('main [role=tab]')]
  await part('')
  for (let n = 1; n < tabs().length; n++) {
    const tab = tabs()[n]
    if (!tab) break
    const name = kindOf(tab)
    tab.click()
    await part(name)
  }
  return { faults: [...faults], seen: [...seen], steps }
}
