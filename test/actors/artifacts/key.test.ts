/**
 * Idempotency keys of uploads: a key is bound to one artifact id, until a caller reports that the
 * artifact was abandoned.
 */
import t from 'tap'
import { defineActor } from '../../../actors/actor.ts'
import { artifactKeyActor } from '../../../actors/artifacts/key.ts'
import { given } from '../../support/given.ts'

const claim = 'artifact_key.claim'
const bound = given(defineActor(artifactKeyActor)).when(claim, { artifact_id: 'art_1' })

t.test('the first claim binds the key', async (t) => {
  t.same(bound.reply, { artifact_id: 'art_1' })
})
t.test('later claims get the bound id and change nothing', async (t) => {
  for (const input of [
    { artifact_id: 'art_1' },
    { artifact_id: 'art_2' },
    { artifact_id: 'art_2', replaces: 'art_3' },
    { artifact_id: 'art_1', replaces: 'art_1' },
  ]) {
    const after = bound.when(claim, input)
    t.same([after.reply, after.events], [{ artifact_id: 'art_1' }, []])
  }
})
t.test('of two callers that found the id abandoned, one binds the key again', async (t) => {
  const first = bound.when(claim, { artifact_id: 'art_2', replaces: 'art_1' })
  t.same(first.reply, { artifact_id: 'art_2' })
  const second = first.when(claim, { artifact_id: 'art_3', replaces: 'art_1' })
  t.same(second.reply, { artifact_id: 'art_2' })
})
