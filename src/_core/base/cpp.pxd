# Owns: the C++ standard containers and primitives the core uses, declared without ``except +``.
# Threads: any; each container belongs to the object that holds it.
# Never: takes the GIL. Cython's libcpp declarations take it to translate exceptions. Here a std::bad_alloc unwinds to
# the entry function of its thread (base/thread.hpp), which turns it into a fatal status.
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from "<utility>" namespace "std" nogil:
    cdef cppclass pair[A, B]:
        A first
        B second
        pair()
        pair(A, B)
        bint operator==(pair[A, B]&)
        bint operator<(pair[A, B]&)


cdef extern from "<string>" namespace "std" nogil:
    cdef cppclass string:
        string()
        string(const char*)
        string(const char*, size_t)
        string(const string&)
        const char* c_str()
        const char* data()
        size_t size()
        bint empty()
        void clear()
        void reserve(size_t)
        void resize(size_t)
        string& assign(const char*)
        string& assign(const char*, size_t)
        string& append(const char*)
        string& append(const char*, size_t)
        string& append(const string&)
        void push_back(char)
        int compare(const string&)
        bint operator==(const string&)
        bint operator==(const char*)
        bint operator!=(const string&)
        bint operator<(const string&)
        char& operator[](size_t)
    string to_string(int)
    string to_string(long)
    string to_string(long long)


cdef extern from "<vector>" namespace "std" nogil:
    cdef cppclass vector[T]:
        cppclass iterator:
            T& operator*()
            iterator operator++()
            iterator operator+(size_t)
            bint operator==(iterator)
            bint operator!=(iterator)
        vector()
        vector(size_t)
        vector(vector[T]&)
        T& operator[](size_t)
        T& at "operator[]"(size_t)
        T& front()
        T& back()
        T* data()
        size_t size()
        bint empty()
        void clear()
        void reserve(size_t)
        void resize(size_t)
        void assign(size_t, const T&)
        void push_back(const T&)
        void emplace_back()
        void pop_back()
        void swap(vector[T]&)
        iterator begin()
        iterator end()
        iterator erase(iterator)
        iterator insert(iterator, const T&)


cdef extern from "<deque>" namespace "std" nogil:
    cdef cppclass deque[T]:
        cppclass iterator:
            T& operator*()
            iterator operator++()
            iterator operator+(size_t)
            bint operator==(iterator)
            bint operator!=(iterator)
        deque()
        T& operator[](size_t)
        T& front()
        T& back()
        size_t size()
        bint empty()
        void clear()
        void push_back(const T&)
        void push_front(const T&)
        void pop_back()
        void pop_front()
        void swap(deque[T]&)
        iterator begin()
        iterator end()
        iterator erase(iterator)


cdef extern from "<unordered_map>" namespace "std" nogil:
    cdef cppclass unordered_map[K, V]:
        cppclass iterator:
            pair[K, V]& operator*()
            iterator operator++()
            bint operator==(iterator)
            bint operator!=(iterator)
        unordered_map()
        V& operator[](const K&)
        V& at "operator[]"(const K&)
        iterator find(const K&)
        iterator begin()
        iterator end()
        iterator erase(iterator)
        size_t erase "erase"(const K&)
        size_t count(const K&)
        size_t size()
        bint empty()
        void clear()
        void swap(unordered_map[K, V]&)


cdef extern from "<map>" namespace "std" nogil:
    cdef cppclass map[K, V]:
        cppclass iterator:
            pair[K, V]& operator*()
            iterator operator++()
            bint operator==(iterator)
            bint operator!=(iterator)
        map()
        V& operator[](const K&)
        iterator find(const K&)
        iterator lower_bound(const K&)
        iterator upper_bound(const K&)
        iterator begin()
        iterator end()
        iterator erase(iterator)
        size_t count(const K&)
        size_t size()
        bint empty()
        void clear()
        void swap(map[K, V]&)


cdef extern from "<set>" namespace "std" nogil:
    cdef cppclass set[T]:
        cppclass iterator:
            T& operator*()
            iterator operator++()
            bint operator==(iterator)
            bint operator!=(iterator)
        set()
        iterator find(const T&)
        iterator begin()
        iterator end()
        iterator erase(iterator)
        void insert(const T&)
        size_t count(const T&)
        size_t size()
        bint empty()
        void clear()


cdef extern from "<atomic>" namespace "std" nogil:
    cdef enum memory_order:
        memory_order_relaxed
        memory_order_acquire
        memory_order_release
        memory_order_acq_rel
        memory_order_seq_cst
    cdef cppclass atomic[T]:
        atomic()
        T load()
        T load(memory_order)
        void store(T)
        void store(T, memory_order)
        T exchange(T)
        T fetch_add(T)
        T fetch_add(T, memory_order)
        T fetch_sub(T)
        T fetch_or(T)
        T fetch_and(T)
        bint compare_exchange_strong(T&, T)


cdef extern from "<mutex>" namespace "std" nogil:
    cdef cppclass mutex:
        mutex()
        void lock()
        void unlock()
        bint try_lock()


cdef extern from "<memory>" namespace "std" nogil:
    cdef cppclass shared_ptr[T]:
        shared_ptr()
        T* get()
        void reset()
        bint operator bool()
        T& operator*()
    shared_ptr[T] make_shared[T](...)
