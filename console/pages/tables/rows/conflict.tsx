/** The dialog for changes to a row that somebody else has changed or deleted in the meantime. */

import { useState } from 'preact/hooks'
import { getOwn } from '../../../../protocol/lookup.ts'
import { Button } from '../../../design/button.tsx'
import { Dialog } from '../../../design/overlay.tsx'
import { Notice } from '../../../design/states.tsx'
import { tablesText as text } from '../text.ts'
import { shownText } from '../values.ts'
import type { TableRow } from './rows.ts'
import { type Conflict, saveRow } from './save.ts'

/** Compares the stored and the entered values, and asks which to keep. */
export function ConflictDialog({
  project,
  conflict: first,
  onEnd,
}: {
  readonly project: string
  readonly conflict: Conflict
  /** Receives the stored row after the decision; undefined if it was deleted. */
  readonly onEnd: (row: TableRow | undefined) => void
}) {
  const [{ stored, changes }, setConflict] = useState(first)
  const end = (): void => onEnd(stored)
  if (!stored)
    return (
      <Dialog title={text.conflict} onClose={end}>
        <Notice tone="warn">{text.gone}</Notice>
        <div class="actions">
          <Button onClick={end}>{text.close}</Button>
        </div>
      </Dialog>
    )
  const mine = async (): Promise<void> => {
    const outcome = await saveRow(project, stored, changes)
    if ('saved' in outcome) onEnd(outcome.saved)
    else setConflict(outcome.conflict)
  }
  return (
    <Dialog title={text.conflict} onClose={end}>
      <p>{text.conflictHint}</p>
      <div class="table-frame">
        <table class="table">
          <thead>
            <tr>
              <th scope="col">{text.field}</th>
              <th scope="col">{text.theirs}</th>
              <th scope="col">{text.mine}</th>
            </tr>
          </thead>
          <tbody>
            {Object.entries(changes).map(([name, value]) => (
              <tr key={name}>
                <th scope="row" class="user-text">
                  {name}
                </th>
                <td class="user-text">{shownText(getOwn(stored.data, name)) || text.noValue}</td>
                <td class="user-text">{shownText(value) || text.noValue}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div class="actions">
        <Button onClick={end}>{text.keepTheirs}</Button>
        <Button kind="primary" onClick={mine}>
          {text.keepMine}
        </Button>
      </div>
    </Dialog>
  )
}
