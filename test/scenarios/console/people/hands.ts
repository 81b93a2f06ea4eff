/**
 * Two ways of working with a page: with the mouse alone, and with the keyboard alone. Scenarios are
 * written once and run with both.
 *
 * Invariants:
 * - The mouse variant presses no key, except to type into a field that it has clicked.
 * - The keyboard variant moves no pointer and never sets the focus by script. It reaches every
 *   control by Tab, Shift-Tab and arrow keys, and records where the focus was lost or not visible.
 */
import type { FileChooser, Locator, Page } from 'playwright-core'
import { onElement, untilTrue } from '../../support/browser.ts'

/** A way of working with a page. */
export interface Hands {
  readonly kind: 'mouse' | 'keyboard'
  /** Focuses a part of the page that handles keys itself, such as a grid. */
  enter(part: Locator): Promise<void>
  /** Activates a control: a button, link, tab, menu item, checkbox or radio button. */
  press(control: Locator): Promise<void>
  /** Replaces the text of a field or editor. */
  write(field: Locator, text: string): Promise<void>
  /** Selects an option of a list by its label. */
  choose(list: Locator, label: string): Promise<void>
  /** Presses a button that opens a file chooser, and selects the files. */
  upload(
    button: Locator,
    ...files: readonly { name: string; mimeType: string; buffer: Buffer }[]
  ): Promise<void>
  /** Waits until the dialog is closed. */
  closed(): Promise<void>
  /** Places at which the keyboard focus was lost or not visible. */
  readonly faults: readonly string[]
}

/** Intercepts file choosers from the start, so that the native dialog never opens. */
const interceptFiles = (page: Page): void => void page.on('filechooser', () => {})
const chosenFiles = (page: Page): Promise<FileChooser> => page.waitForEvent('filechooser')
const gone = (page: Page): Promise<void> =>
  page.locator('dialog[open]').waitFor({ state: 'detached' })

/** Returns the `Hands` that use the mouse alone. */
export function mouseOf(page: Page): Hands {
  interceptFiles(page)
  return {
    kind: 'mouse',
    faults: [],
    enter: (part) => part.click(),
    press: (control) => control.click(),
    async write(field, text) {
      await field.click()
      await page.keyboard.press('Control+a')
      await page.keyboard.insertText(text)
    },
    async choose(list, label) {
      await list.selectOption({ label })
    },
    async upload(button, ...files) {
      const [chooser] = await Promise.all([chosenFiles(page), button.click()])
      await chooser.setFiles([...files])
    },
    closed: () => gone(page),
  }
}

/** Maximum number of key presses to reach a control. */
const MAX_KEYS = 160
/**
 * Position of a control relative to the focus: `here`, `before`, `after`, or `lost` if nothing has
 * the focus.
 */
const WHERE = `(element) => {
  const active = document.activeElement
  if (active === element || element.contains(active) && active.matches('.cm-content')) return 'here'
  if (!active || active === document.body) return 'lost'
  const { DOCUMENT_POSITION_FOLLOWING: follows } = Node
  return element.compareDocumentPosition(active) & follows ? 'before' : 'after'
}`
/**
 * Whether the focused element, or one of its three nearest ancestors, has a visible focus
 * indicator.
 */
const MARKED = `(() => {
  const probe = document.body.appendChild(document.createElement('i'))
  probe.style.color = 'var(--accent)'
  const accent = getComputedStyle(probe).color
  probe.remove()
  let element = document.activeElement
  for (let up = 0; element && up < 4; up++, element = element.parentElement) {
    const { outlineStyle, outlineWidth, boxShadow, borderTopColor } = getComputedStyle(element)
    if (outlineStyle !== 'none' && outlineWidth !== '0px' || boxShadow !== 'none') return true
    if (borderTopColor === accent) return true
  }
  return false
})()`
const KIND = `(element) =>
  element.getAttribute('role') || element.type || element.tagName.toLowerCase()`
/** The position of a control, the name of the focused element, and whether that is an editor. */
const STATE = `(element) => {
  const { ariaLabel, title, textContent, tagName } = document.activeElement
  return [
    (${WHERE})(element),
    ariaLabel || title || textContent.slice(0, 20) || tagName,
    document.activeElement.matches('.cm-content'),
  ]
}`

/** Returns the `Hands` that use the keyboard alone. */
export function keyboardOf(page: Page): Hands {
  interceptFiles(page)
  const faults: string[] = []
  const { keyboard } = page
  const where = (control: Locator): Promise<string> => onElement(control, WHERE) as Promise<string>
  /** Presses the keys that `key` returns until the control has the focus. */
  const step = async (control: Locator, key: (at: string) => string): Promise<void> => {
    const trail: unknown[] = []
    for (let count = 0; count < MAX_KEYS; count++) {
      const [at, name, inEditor] = (await onElement(control, STATE)) as [string, string, boolean]
      if (at === 'here') return
      trail.push(`${at} ${name}`)
      if (inEditor) await keyboard.press('Escape')
      await keyboard.press(key(at))
    }
    throw new Error(`the keyboard does not reach ${control}: ${trail.slice(-9).join(', ')}`)
  }
  const tab = (at: string): string => (at === 'before' ? 'Shift+Tab' : 'Tab')
  const reach = async (control: Locator): Promise<void> => {
    await control.waitFor()
    if ((await where(control)) === 'lost') faults.push(`the focus was lost before ${control}`)
    await step(control, tab)
    if (!(await page.evaluate(MARKED))) faults.push(`the focus is not visible on ${control}`)
  }
  return {
    kind: 'keyboard',
    faults,
    enter: reach,
    async press(control) {
      await control.waitFor()
      const kind = await onElement(control, KIND)
      if (kind === 'menuitem') {
        await page.locator('[role=menuitem]:focus').waitFor()
        await step(control, () => 'ArrowDown')
        return keyboard.press('Enter')
      }
      if (kind === 'tab') {
        const tabs = control.locator('xpath=ancestor::*[@role="tablist"]')
        await reach(tabs.locator('[aria-selected=true]'))
        return step(control, (at) => (at === 'before' ? 'ArrowLeft' : 'ArrowRight'))
      }
      if (kind === 'radio') {
        const group = control.locator('xpath=ancestor::fieldset')
        const chosen = group.locator('input:checked')
        await reach((await chosen.count()) > 0 ? chosen : group.locator('input').first())
        await step(control, (at) => (at === 'before' ? 'ArrowUp' : 'ArrowDown'))
        if (!(await control.isChecked())) await keyboard.press('Space')
        return
      }
      await reach(control)
      await keyboard.press(kind === 'checkbox' ? 'Space' : 'Enter')
    },
    async write(field, text) {
      await reach(field)
      await keyboard.press('Control+a')
      await keyboard.insertText(text)
    },
    async choose(list, label) {
      await reach(list)
      await keyboard.press('Home')
      for (let count = 0; count < MAX_KEYS; count++) {
        if ((await onElement(list, '(list) => list.selectedOptions[0].label')) === label) return
        await keyboard.press('ArrowDown')
      }
      throw new Error(`${list} has no option ${label}`)
    },
    async upload(button, ...files) {
      await reach(button)
      const [chooser] = await Promise.all([chosenFiles(page), keyboard.press('Enter')])
      await chooser.setFiles([...files])
    },
    async closed() {
      await gone(page)
      await untilTrue(page, 'document.activeElement !== document.body')
    },
  }
}
