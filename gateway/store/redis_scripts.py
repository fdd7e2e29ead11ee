"""The Lua that runs inside Redis: each script is one atomic step within one conversation's keys.

Layout. `tk:{conversation}` is a hash (token, nonce, number, owner, expires, seen, last, work, at,
row, listed, epoch); its other keys begin with the same hash tag, so they share a slot and scripts
derive their names: `:waiting` (zset of seq), `:in` and `:dead` (seq → "at json"), `:live` (open
turns → status), `:turns`, `:r:<turn>` (n → record), `:views` (bodies) with the zsets `:rev`,
`:pos`, `:o:<turn>` and the set `:unsent`, `:questions` with the set `:open`, `:transcript` with the
zset `:n`, `:thread`, `:audit` (lines on their way to the global list), `:e:<key>` (seen events, 24 h).
Bodies are opaque strings: never decoded here. A script checks everything before it writes
anything, since Redis rolls nothing back.

`listed` = 1: the conversation is in the global zset `tk:active` with a score of at least `epoch`.
What makes work (accept, acquire, resubmit) is refused with 'unlisted' until its caller has added
the conversation under the present epoch; what ends work raises the epoch, and then the entry may
be removed if its score is below. So no crash and no race leaves work that the scan cannot see.
"""

import hashlib

HINTS = "tk:hints"

_CHECKS = """
local function unlisted(k, given)
  local h = redis.call('HMGET', k, 'listed', 'epoch')
  local epoch = h[2] or '0'
  if h[1] ~= '1' and given ~= epoch then return {'unlisted', epoch} end
end
local function behind(k, seq)
  local last = tonumber(redis.call('HGET', k, 'last') or '0')
  if tonumber(seq) <= last then return {'again', last} end
end
"""

# ARGV: conversation, now, epoch, then (seq, event, message, body) for each
ACCEPT = f"""#!lua
{_CHECKS}
local k, now, fresh, seqs, mine = KEYS[1], ARGV[2], {{}}, {{}}, {{}}
for i = 4, #ARGV, 4 do
  local seq, known = ARGV[i], false
  for j = 1, 2 do
    local key = ARGV[i + j]
    local held = key ~= '' and (mine[key] or redis.call('GET', k .. ':e:' .. key))
    if held then known = held end
  end
  if known == seq then
    seqs[#seqs + 1] = seq -- a repeated call whose reply was lost
  elseif known then
    seqs[#seqs + 1] = '0'
  else
    seqs[#seqs + 1] = seq
    fresh[#fresh + 1] = i
    mine[ARGV[i + 1]] = seq
    if ARGV[i + 2] ~= '' then mine[ARGV[i + 2]] = seq end
  end
end
if #fresh == 0 then return {{'kept', seqs}} end
local refused = unlisted(k, ARGV[3])
if refused then return refused end
local low, last = behind(k, ARGV[fresh[1]])
if low then return low end
for _, i in ipairs(fresh) do
  last = ARGV[i]
  redis.call('ZADD', k .. ':waiting', last, last)
  redis.call('HSET', k .. ':in', last, now .. ' ' .. ARGV[i + 3])
end
for key, seq in pairs(mine) do redis.call('SET', k .. ':e:' .. key, seq, 'EX', 86400) end
redis.call('HSET', k, 'last', last, 'at', now, 'listed', 1)
redis.call('PUBLISH', '{HINTS}', ARGV[1])
return {{'kept', seqs}}
"""

# ARGV: conversation, old seq, new seq, epoch
RESUBMIT = f"""#!lua
{_CHECKS}
local k = KEYS[1]
local body = redis.call('HGET', k .. ':dead', ARGV[2])
if not body then -- perhaps a repeated call whose reply was lost
  return {{redis.call('HEXISTS', k .. ':in', ARGV[3]) == 1 and 'kept' or 'none'}}
end
local refused = unlisted(k, ARGV[4])
if refused then return refused end
local low = behind(k, ARGV[3])
if low then return low end
redis.call('HDEL', k .. ':dead', ARGV[2])
redis.call('HSET', k .. ':in', ARGV[3], body)
redis.call('ZADD', k .. ':waiting', ARGV[3], ARGV[3])
redis.call('HSET', k, 'last', ARGV[3], 'listed', 1)
redis.call('PUBLISH', '{HINTS}', ARGV[1])
return {{'kept'}}
"""

# ARGV: owner, nonce, now, until, epoch
ACQUIRE = f"""#!lua
{_CHECKS}
local k = KEYS[1]
local h = redis.call('HMGET', k, 'token', 'owner', 'expires', 'nonce', 'crashed', 'row',
  'last')
local token, crashed = h[1], h[5]
if not (h[2] and h[4] == ARGV[2]) then -- else: a repeated call whose reply was lost
  if h[2] and h[2] ~= ARGV[1] and tonumber(h[3]) > tonumber(ARGV[3]) then return {{'held'}} end
  local refused = unlisted(k, ARGV[5])
  if refused then return refused end
  token = redis.call('HINCRBY', k, 'token', 1)
  crashed = h[2] and '1' or '0'
  redis.call('HSET', k, 'owner', ARGV[1], 'nonce', ARGV[2], 'expires', ARGV[4], 'number', 0,
    'work', 1, 'listed', 1, 'crashed', crashed)
  redis.call('HSETNX', k, 'at', ARGV[3])
end
local function bodies(hash, ids)
  local found = {{}}
  for _, id in ipairs(ids) do found[#found + 1] = redis.call('HGET', k .. hash, id) end
  return found
end
local seqs = redis.call('ZRANGE', k .. ':waiting', 0, -1)
return {{'taken', tonumber(token), {{h[7] or '0', crashed, h[6] or ''}}, seqs, bodies(':in', seqs),
  bodies(':turns', redis.call('HKEYS', k .. ':live')),
  bodies(':views', redis.call('SMEMBERS', k .. ':unsent')),
  bodies(':questions', redis.call('SMEMBERS', k .. ':open')),
  redis.call('HGETALL', k .. ':audit')}}
"""

# ARGV: token, nonce, number, seen ('': no release), then operations of fixed length.
# Numbers of one lease have no gaps: a repeated one has been done, after a failed one none passes.
COMMIT = """#!lua
local k = KEYS[1]
local h = redis.call('HMGET', k, 'token', 'nonce', 'number', 'owner', 'epoch', 'last', 'outcome')
if h[1] ~= ARGV[1] or h[2] ~= ARGV[2] then return {'fenced', 0} end
local number, done, epoch = tonumber(ARGV[3]), tonumber(h[3]), tonumber(h[5] or '0')
if number < done then return {ARGV[4] == '' and 'kept' or 'held', 0} end
if number == done then return {h[7], epoch - 1} end
if not h[4] then return {'fenced', 0} end
if number > done + 1 then return {'gap', 0} end

local length = {r = 3, t = 3, d = 1, x = 1, v = 6, q = 3, s = 2, h = 1, c = 1, a = 2}
local function each(visit)
  local i = 5
  while i <= #ARGV do
    visit(ARGV[i], i + 1)
    i = i + 1 + length[ARGV[i]]
  end
end

local new, clash = {}, false
each(function(op, i)
  local key, field
  if op == 'r' then key, field = k .. ':r:' .. ARGV[i], ARGV[i + 1] end
  if op == 's' then key, field = k .. ':transcript', ARGV[i] end
  if key then
    local name = key .. ' ' .. field
    clash = clash or new[name] or redis.call('HEXISTS', key, field) == 1
    new[name] = true
  end
end)
if clash then return {'clash', 0} end

local write = {
  r = function(i) redis.call('HSET', k .. ':r:' .. ARGV[i], ARGV[i + 1], ARGV[i + 2]) end,
  t = function(i)
    local id, status, records = ARGV[i], ARGV[i + 1], k .. ':r:' .. ARGV[i]
    redis.call('HSET', k .. ':turns', id, ARGV[i + 2])
    if status == 'running' or status == 'parked' then
      redis.call('HSET', k .. ':live', id, status)
      redis.call('PERSIST', records)
    else
      redis.call('HDEL', k .. ':live', id)
      redis.call('EXPIRE', records, 2592000)
    end
  end,
  d = function(i)
    redis.call('HDEL', k .. ':in', ARGV[i])
    redis.call('ZREM', k .. ':waiting', ARGV[i])
  end,
  x = function(i)
    local body = redis.call('HGET', k .. ':in', ARGV[i])
    if body then redis.call('HSET', k .. ':dead', ARGV[i], body) end
    redis.call('HDEL', k .. ':in', ARGV[i])
    redis.call('ZREM', k .. ':waiting', ARGV[i])
  end,
  v = function(i) -- turn, name, rev, position, unsent, body
    local id = ARGV[i] .. ' ' .. ARGV[i + 1]
    redis.call('HSET', k .. ':views', id, ARGV[i + 5])
    redis.call('ZADD', k .. ':rev', ARGV[i + 2], id)
    redis.call('ZADD', k .. ':pos', ARGV[i + 3], id)
    redis.call('ZADD', k .. ':o:' .. ARGV[i], ARGV[i + 3], id)
    redis.call(ARGV[i + 4] == '1' and 'SADD' or 'SREM', k .. ':unsent', id)
  end,
  q = function(i)
    redis.call('HSET', k .. ':questions', ARGV[i], ARGV[i + 2])
    redis.call(ARGV[i + 1] == 'open' and 'SADD' or 'SREM', k .. ':open', ARGV[i])
  end,
  s = function(i)
    redis.call('HSET', k .. ':transcript', ARGV[i], ARGV[i + 1])
    redis.call('ZADD', k .. ':n', ARGV[i], ARGV[i])
  end,
  h = function(i) redis.call('SET', k .. ':thread', ARGV[i]) end,
  c = function(i) redis.call('HSET', k, 'row', ARGV[i]) end,
  a = function(i) redis.call('HSET', k .. ':audit', ARGV[i], ARGV[i + 1]) end,
}
each(function(op, i) write[op](i) end)

local outcome = 'kept'
if ARGV[4] ~= '' then
  local busy = tonumber(h[6] or '0') > tonumber(ARGV[4])
    or redis.call('EXISTS', k .. ':unsent') == 1
  for _, status in ipairs(redis.call('HVALS', k .. ':live')) do
    busy = busy or status == 'running'
  end
  outcome = busy and 'held' or 'released'
  if not busy then
    redis.call('HDEL', k, 'owner')
    redis.call('HSET', k, 'expires', 0, 'work', 0, 'seen', ARGV[4], 'listed', 0,
      'epoch', epoch + 1)
  end
end
redis.call('HSET', k, 'number', ARGV[3], 'outcome', outcome)
return {outcome, epoch}
"""

# ARGV: token, nonce, until ('': give back)
HOLD = """#!lua flags=allow-oom
local h = redis.call('HMGET', KEYS[1], 'token', 'nonce', 'owner')
if h[1] ~= ARGV[1] or h[2] ~= ARGV[2] or not h[3] then return 0 end
if ARGV[3] ~= '' then
  redis.call('HSET', KEYS[1], 'expires', ARGV[3])
else
  redis.call('HDEL', KEYS[1], 'owner')
  redis.call('HSET', KEYS[1], 'expires', 0)
end
return 1
"""

# ARGV: owner, now. {1, last}: may be taken; {0}: another's; {-1, epoch}: no work, unlisted.
LOOK = """#!lua flags=allow-oom
local h = redis.call('HMGET', KEYS[1], 'work', 'last', 'seen', 'owner', 'expires', 'epoch')
local last = tonumber(h[2] or '0')
if h[1] ~= '1' and last <= tonumber(h[3] or '0') then
  local epoch = tonumber(h[6] or '0')
  redis.call('HSET', KEYS[1], 'listed', 0, 'epoch', epoch + 1)
  return {-1, epoch}
end
if h[4] and h[4] ~= ARGV[1] and tonumber(h[5]) > tonumber(ARGV[2]) then return {0, 0} end
return {1, last}
"""

# ARGV: member, bound, new score ('': remove). Does nothing if the score is above `bound`.
MOVE = """#!lua flags=allow-oom
local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not score or tonumber(score) > tonumber(ARGV[2]) then return 0 end
if ARGV[3] == '' then redis.call('ZREM', KEYS[1], ARGV[1])
else redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1]) end
return 1
"""

# ARGV: nonce, key, '1' or '0' (remove), body, then optionally what is expected
PUT = """#!lua
local once = KEYS[1] .. ':once:' .. ARGV[1]
local before = redis.call('GET', once)
if before then return tonumber(before) end
local same = #ARGV < 5 or (redis.call('HGET', KEYS[1], ARGV[2]) or '') == ARGV[5]
if same and ARGV[3] == '1' then redis.call('HSET', KEYS[1], ARGV[2], ARGV[4]) end
if same and ARGV[3] == '0' then redis.call('HDEL', KEYS[1], ARGV[2]) end
redis.call('SET', once, same and 1 or 0, 'EX', 60)
return same and 1 or 0
"""

# ARGV: zset, hash, lowest, highest, limit. Flat: id, body, id, body …
RANGE = """#!lua flags=no-writes
local found = {}
for _, id in ipairs(redis.call('ZRANGE', KEYS[1] .. ARGV[1], ARGV[3], ARGV[4], 'BYSCORE',
  'LIMIT', 0, ARGV[5])) do
  found[#found + 1] = id
  found[#found + 1] = redis.call('HGET', KEYS[1] .. ARGV[2], id)
end
return found
"""

# ARGV: after, limit. Bodies of views, the highest position first.
LATEST = """#!lua flags=no-writes
local k, after, limit, found, start = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), {}, 0
while #found < limit do
  local ids = redis.call('ZRANGE', k .. ':pos', start, start + limit - 1, 'REV')
  if #ids == 0 then break end
  for _, id in ipairs(ids) do
    if #found < limit and tonumber(redis.call('ZSCORE', k .. ':rev', id)) > after then
      found[#found + 1] = redis.call('HGET', k .. ':views', id)
    end
  end
  start = start + limit
end
return found
"""

# ARGV: prefix, limit. Members with that prefix, the highest score first.
PREFIXED = """#!lua flags=no-writes
local prefix, limit, found, start = ARGV[1], tonumber(ARGV[2]), {}, 0
while #found < limit do
  local ids = redis.call('ZRANGE', KEYS[1], start, start + 499, 'REV')
  if #ids == 0 then break end
  for _, id in ipairs(ids) do
    if #found < limit and string.sub(id, 1, #prefix) == prefix then found[#found + 1] = id end
  end
  start = start + 500
end
return found
"""

ALL = (ACCEPT, RESUBMIT, ACQUIRE, COMMIT, HOLD, LOOK, MOVE, PUT, RANGE, LATEST, PREFIXED)
_SHA = {source: hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest() for source in ALL}


def run(
    source: str, key: str, *args: str | bytes | int | float
) -> tuple[str | bytes | int | float, ...]:
    """The command that runs a script on `key`."""
    return "EVALSHA", _SHA[source], 1, key, *args
